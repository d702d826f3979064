//! The open file descriptors of the process.

use std::collections::BTreeMap;

/// The descriptors with their targets.
pub(crate) type Descriptors = BTreeMap<i32, String>;

/// Returns the open descriptors; empty if the system does not list them.
pub(crate) fn open() -> Descriptors {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return Descriptors::new() };
    let entry = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.ok()?.path();
        let number = path.file_name()?.to_str()?.parse().ok()?;
        // The descriptor of the listed directory is closed by now.
        let what = std::fs::read_link(path).ok()?.display().to_string();
        (!what.starts_with("/proc/")).then_some((number, what))
    };
    entries.filter_map(entry).collect()
}

/// Checks that no descriptor was left open.
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
    fn an_open_descriptor_is_named() {
        let before = Descriptors::from([(0, String::from("a file"))]);
        let mut after = before.clone();
        assert_eq!(compare(before.clone(), after.clone()), Ok(()));
        after.insert(7, String::from("socket:[1]"));
        assert!(compare(before.clone(), after).unwrap_err().contains("7 (socket:[1])"));
        assert_eq!(compare(before, Descriptors::new()), Ok(()));
    }

    #[test]
    fn a_socket_is_listed_until_it_is_closed() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&socket);
        assert!(open().contains_key(&number));
    }
}
