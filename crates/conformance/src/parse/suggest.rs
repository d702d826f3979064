//! "Did you mean": the nearest of some words.

/// ` (did you mean ..?)`, or nothing if no word is near.
pub(crate) fn near<'a>(word: &str, words: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(word, words) {
        Some(found) => format!(" (did you mean `{found}`?)"),
        None => String::new(),
    }
}

/// The word with the fewest edits, if they are few for its length.
pub fn nearest<'a>(word: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = word.chars().count().div_ceil(3).clamp(1, 3);
    words
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(edits, _)| *edits <= allowed)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// Edits from one word to another, letter case apart; words of more than 64 letters are far.
fn distance(left: &str, right: &str) -> usize {
    let lower = |word: &str| word.to_ascii_lowercase().chars().collect::<Vec<_>>();
    let left = lower(left);
    let right = lower(right);
    if left.len() > 64 || right.len() > 64 {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.iter().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let cost = (diagonal + usize::from(a != b)).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = core::mem::replace(&mut row[j + 1], cost);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_near_words_are_suggested() {
        let words = ["channel", "capacity", "value"];
        assert_eq!(nearest("chanel", words), Some("channel"));
        assert_eq!(nearest("VALUE", words), Some("value"));
        assert_eq!(nearest("xyz", words), None);
        assert_eq!(near("capcity", words), " (did you mean `capacity`?)");
        assert_eq!(near(&"x".repeat(1000), words), "");
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
