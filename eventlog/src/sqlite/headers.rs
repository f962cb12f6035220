//! The bytes of a record's headers in their column.
//!
//! Layout, repeated per header: name length (u32, little endian), name (UTF-8), value length (u32), value. A record
//! without headers has NULL, not an empty blob, so that rows without headers cost one byte.

/// Returns the column's bytes; `None` if there are no headers.
pub(super) fn encode(headers: &[(String, Vec<u8>)]) -> Option<Vec<u8>> {
    if headers.is_empty() {
        return None;
    }
    let mut bytes =
        Vec::with_capacity(headers.iter().map(|(name, value)| name.len() + value.len() + 8).sum());
    for (name, value) in headers {
        for part in [name.as_bytes(), value] {
            // RECORD_BYTES_MAX bounds every part far below 4 GiB.
            let length = u32::try_from(part.len()).expect("a header is smaller than a transaction may be");
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(part);
        }
    }
    Some(bytes)
}

/// Returns the headers in a column's bytes, or a description of the fault.
pub(super) fn decode(mut bytes: &[u8]) -> Result<Vec<(String, Vec<u8>)>, &'static str> {
    let mut headers = Vec::new();
    while !bytes.is_empty() {
        let name = take_part(&mut bytes)?;
        let name = std::str::from_utf8(name).map_err(|_| "a header name that is not UTF-8")?;
        let value = take_part(&mut bytes)?;
        headers.push((name.to_owned(), value.to_owned()));
    }
    Ok(headers)
}

fn take_part<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], &'static str> {
    const CUT: &str = "headers that end too early";
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or(CUT)?;
    let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| CUT)?;
    let (part, rest) = rest.split_at_checked(length).ok_or(CUT)?;
    *bytes = rest;
    Ok(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_headers_survive(headers in prop::collection::vec((".{0,8}", prop::collection::vec(any::<u8>(), 0..8)), 0..5)) {
            let bytes = encode(&headers);
            prop_assert_eq!(bytes.is_none(), headers.is_empty());
            prop_assert_eq!(decode(&bytes.unwrap_or_default()).unwrap(), headers);
        }

        #[test]
        fn any_damage_is_an_error_or_other_headers(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(headers) = decode(&bytes) {
                prop_assert_eq!(encode(&headers).unwrap_or_default(), bytes);
            }
        }
    }

    #[test]
    fn every_cut_is_noticed() {
        let bytes = encode(&[("trace".to_owned(), b"0123".to_vec())]).unwrap();
        for length in 1..bytes.len() {
            assert_eq!(decode(&bytes[..length]), Err("headers that end too early"), "{length} bytes");
        }
    }
}
