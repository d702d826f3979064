//! Duration strings such as `1h30m`.

/// Parses a duration string, the sum of numbers with units, and returns nanoseconds.
///
/// # Errors
///
/// Returns a description of the expected form if the text is no duration or is too long.
pub(crate) fn span(text: &str) -> Result<u64, String> {
    let wrong = || format!("a duration such as \"10ms\" or \"1h30m\", not \"{text}\"");
    let mut rest = text.trim();
    let mut total = 0u64;
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, tail) = rest.split_at(digits);
        let letters = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let scale = match unit {
            "ns" => 1,
            "us" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "d" => 86_400_000_000_000,
            "" if total == 0 && tail.is_empty() => 1,
            _ => return Err(wrong()),
        };
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let part = number.checked_mul(scale);
        total = part
            .and_then(|part| total.checked_add(part))
            .ok_or_else(|| format!("a duration below 584 years, not \"{text}\""))?;
        rest = tail;
    }
    Ok(total)
}
