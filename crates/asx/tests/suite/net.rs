//! The examples of servers run, end, and print what their comments say.

#![allow(dead_code, reason = "the examples' own `main`s are not called here")]

use crate::common;

#[path = "../../examples/chat.rs"]
mod chat;
#[path = "../../examples/echo.rs"]
mod echo;

use asx::prelude::*;
use common::on_each;

#[test]
fn an_echo_server_serves_and_shuts_down() {
    on_each(|runtime| {
        let (heard, report) = runtime.block_on(async |cx: Cx| echo::day(&cx).await).unwrap();
        assert_eq!(heard, ["hello", "world"]);
        assert_eq!((report.accepted, report.completed, report.failed), (2, 2, 0));
    });
}

#[test]
fn guests_receive_all_lines_and_the_end() {
    on_each(|runtime| {
        let heard = runtime.block_on(async |cx: Cx| chat::evening(&cx).await).unwrap();
        let expected =
            ["welcome, Grace", "Ada: is anybody here?", "Grace: I am", "the room is closed"];
        assert_eq!(heard, expected);
    });
}

/// A context with a network, through the facade only.
#[test]
fn errors_of_sockets_are_errors_of_scopes() {
    on_each(|runtime| {
        let refused: asx::io::Result<()> = runtime.block_on(async |cx: Cx| {
            cx.scope(async |s| {
                s.spawn(async |cx: Cx| {
                    asx::net::TcpStream::connect(&cx, "not an address").await.map(drop)
                });
                Ok(())
            })
            .await
        });
        assert_eq!(refused.unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
    });
}
