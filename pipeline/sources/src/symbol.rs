//! Symbols: a venue and a ticker as one name that every consumer accepts.

use warptape_events::SYMBOL_BYTES_MAX;

/// Returns `VENUE:TICKER`. An error names the ticker's expected form.
pub(super) fn join_symbol(venue: &str, ticker: &str) -> Result<String, String> {
    let symbol = [venue, ":", ticker].concat();
    if ticker.is_empty() {
        return Err("a ticker".to_owned());
    }
    check_symbol(&symbol)?;
    Ok(symbol)
}

/// Checks that records accept a complete symbol. An error names the symbol's expected form.
pub(super) fn check_symbol(symbol: &str) -> Result<(), String> {
    if symbol.len() > SYMBOL_BYTES_MAX {
        return Err(format!("a symbol of at most {SYMBOL_BYTES_MAX} bytes with its venue"));
    }
    if symbol.is_empty() || symbol.chars().any(char::is_control) {
        return Err("a symbol without control characters, VENUE:TICKER".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_what_records_accept() {
        assert_eq!(join_symbol("BINANCE", "BTCUSDT"), Ok("BINANCE:BTCUSDT".to_owned()));
        assert!(join_symbol("V", "").is_err());
        assert!(join_symbol("V", "A\u{7}").is_err());
        assert!(join_symbol("V", &"A".repeat(SYMBOL_BYTES_MAX - 2)).is_ok());
        assert!(join_symbol("V", &"A".repeat(SYMBOL_BYTES_MAX - 1)).is_err());
        assert!(check_symbol("").is_err());
    }
}
