//! The descriptors that the process has open.

use std::collections::BTreeMap;

/// Each, and what it is.
pub(crate) type Descriptors = BTreeMap<i32, String>;

/// Those that are open now; none where the system does not tell.
pub(crate) fn open() -> Descriptors {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return Descriptors::new() };
    let entry = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.ok()?.path();
        let number = path.file_name()?.to_str()?.parse().ok()?;
        // The one of the directory that is read is gone when it is looked at.
        let what = std::fs::read_link(path).ok()?.display().to_string();
        (!what.starts_with("/proc/")).then_some((number, what))
    };
    entries.filter_map(entry).collect()
}

/// Whether none was left open.
pub(crate) fn compare(before: Descriptors, after: Descriptors) -> Result<(), String> {
    let left: Vec<String> = after
        .into_iter()
        .filter(|(number, _)| !before.contains_key(number))
        .map(|(number, what)| format!("{number} ({what})"))
        .collect();
    match left.is_empty() {
        true => Ok(()),
        false => Err(format!("{} descriptors are left open: {}", left.len(), left.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_that_is_left_is_named() {
        let before = Descriptors::from([(0, String::from("a file"))]);
        let mut after = before.clone();
        assert_eq!(compare(before.clone(), after.clone()), Ok(()));
        after.insert(7, String::from("socket:[1]"));
        assert!(compare(before.clone(), after).unwrap_err().contains("7 (socket:[1])"));
        assert_eq!(compare(before, Descriptors::new()), Ok(()));
    }

    #[test]
    fn a_socket_is_seen_until_it_is_closed() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&socket);
        assert!(open().contains_key(&number));
    }
}
