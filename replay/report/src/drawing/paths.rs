//! SVG paths with as few characters as possible.

/// Formats a coordinate, with at most two digits after the point.
pub fn place(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Returns a line through points.
pub fn polyline(points: &[(f64, f64)]) -> String {
    let mut path = String::from("M");
    for (index, (x, y)) in points.iter().enumerate() {
        let before = if index > 0 { " " } else { "" };
        path += &format!("{before}{} {}", place(*x), place(*y));
    }
    if points.is_empty() { "M0 0".to_owned() } else { path }
}

/// Returns a line of steps: one for each slot that has a value.
pub fn steps(heights: &[Option<f64>]) -> String {
    let mut path = String::new();
    let mut before = None;
    for (index, height) in heights.iter().enumerate() {
        if let Some(height) = height {
            let height = place(*height);
            match &before {
                None => path += &format!("M{index} {height}H{}", index + 1),
                // Equal steps are merged by extending the last one to the right.
                Some(same) if *same == height => path += &format!("H{}", index + 1),
                Some(_) => path += &format!("V{height}H{}", index + 1),
            }
            before = Some(height);
        } else {
            before = None;
        }
    }
    if path.is_empty() { "M0 0".to_owned() } else { path }
}

/// Returns the area between two lines of steps, in the slots in which both have values.
pub fn band(lower: &[Option<f64>], upper: &[Option<f64>]) -> String {
    let both: Vec<Option<(f64, f64)>> =
        lower.iter().zip(upper).map(|(lower, upper)| lower.zip(*upper)).collect();
    let mut path = String::new();
    let mut index = 0;
    while index < both.len() {
        let run = both[index..].iter().take_while(|one| one.is_some()).count();
        let values: Vec<(f64, f64)> = both[index..index + run].iter().flatten().copied().collect();
        if let Some((first, _)) = values.first() {
            path += &format!("M{index} {}", place(*first));
            for (at, (_, upper)) in (index..).zip(&values) {
                path += &format!("V{}H{}", place(*upper), at + 1);
            }
            for (at, (lower, _)) in (index..index + run).zip(&values).rev() {
                path += &format!("V{}H{at}", place(*lower));
            }
            path += "Z";
        }
        index += run.max(1);
    }
    if path.is_empty() { "M0 0".to_owned() } else { path }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stop_where_nothing_is_known() {
        let heights = [None, Some(50.0), Some(50.0), Some(20.0), None, Some(0.0)];
        assert_eq!(steps(&heights), "M1 50H2H3V20H4M5 0H6");
        assert_eq!(steps(&[None, None]), "M0 0");
        assert_eq!(
            band(&[Some(100.0), None, Some(90.0)], &[Some(1.0), Some(2.0), Some(3.0)]),
            "M0 100V1H1V100H0ZM2 90V3H3V90H2Z"
        );
        assert_eq!([polyline(&[(1.0, 2.5), (-0.001, 7.126)]), polyline(&[])], ["M1 2.5 0 7.13", "M0 0"]);
    }
}
