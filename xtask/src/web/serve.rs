//! A server for static files, on this machine only.

use crate::Result;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Component, Path, PathBuf};
use std::thread;

/// Serves a folder until it is interrupted.
pub(super) fn forever(folder: &Path) -> Result {
    let (listener, address) = listen(8722)?;
    println!("the demo is at {address}/ ; Ctrl-C ends it");
    accept(&listener, folder);
    Ok(())
}

/// Serves a folder for as long as this process lives: its address.
pub(super) fn in_background(folder: PathBuf) -> Result<String> {
    let (listener, address) = listen(0)?;
    thread::spawn(move || accept(&listener, &folder));
    Ok(address)
}

fn listen(port: u16) -> Result<(TcpListener, String)> {
    let listener = TcpListener::bind(("127.0.0.1", port)).map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    Ok((listener, format!("http://{address}")))
}

fn accept(listener: &TcpListener, folder: &Path) {
    for stream in listener.incoming().flatten() {
        let folder = folder.to_owned();
        thread::spawn(move || answer(stream, &folder));
    }
}

fn answer(mut stream: TcpStream, folder: &Path) {
    let mut request = String::new();
    let mut reader = BufReader::new(&stream);
    if reader.read_line(&mut request).is_err() {
        return;
    }
    // The rest of the request says nothing that matters here.
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
        line.clear();
    }
    let path = request.split(' ').nth(1).unwrap_or("/");
    let found = inside(folder, path).and_then(|file| Some((kind(&file), fs::read(file).ok()?)));
    let (status, (kind, body)) = match found {
        Some(found) => ("200 OK", found),
        None => ("404 Not Found", ("text/plain", b"not found".to_vec())),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
}

/// The file a path names, if that is inside the folder.
fn inside(folder: &Path, path: &str) -> Option<PathBuf> {
    let path = path.split(['?', '#']).next()?.trim_start_matches('/');
    let path = if path.is_empty() || path.ends_with('/') {
        format!("{path}index.html")
    } else {
        path.into()
    };
    let plain = Path::new(&path).components().all(|part| matches!(part, Component::Normal(_)));
    plain.then(|| folder.join(path))
}

fn kind(path: &Path) -> &'static str {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript",
        Some("css") => "text/css",
        Some("wasm") => "application/wasm",
        Some("json") => "application/json",
        Some("svg") => "image/svg+xml",
        _ => "text/plain; charset=utf-8",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_inside_is_served() {
        let folder = Path::new("dist");
        assert_eq!(inside(folder, "/"), Some(folder.join("index.html")));
        assert_eq!(inside(folder, "/a/b.js?x#y"), Some(folder.join("a/b.js")));
        assert_eq!(inside(folder, "/pkg/"), Some(folder.join("pkg/index.html")));
        assert_eq!(inside(folder, "/../secret"), None);
        assert_eq!(inside(folder, "/a/../../secret"), None);
        assert_eq!(inside(folder, "//etc/passwd"), Some(folder.join("etc/passwd")));
    }
}
