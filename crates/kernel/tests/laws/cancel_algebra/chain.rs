//! The limits of a chain of causes: at the limit, one above it, and the links that are kept.

use super::reason;
use asx_kernel::cancel::{ChainLimits, Kind, LINK_COST, Reason};

/// Returns a link with `number` as its timestamp.
fn link(number: u64, message_bytes: usize) -> Reason {
    let bare = reason(Kind::ParentCancelled, number);
    if message_bytes == 0 { bare } else { bare.with_message("m".repeat(message_bytes)) }
}

/// Returns the links `1..=n`, each caused by the one before, with number `n` on top.
fn grow(n: u64, message_bytes: usize, limits: ChainLimits) -> Reason {
    (2..=n).fold(link(1, message_bytes), |cause, number| {
        link(number, message_bytes).caused_by(cause, limits)
    })
}

/// Returns the numbers of the links from the top, and whether each is marked as truncated.
fn shape(reason: &Reason) -> (Vec<u64>, Vec<bool>) {
    reason.chain().map(|link| (link.timestamp.as_nanos(), link.truncated)).unzip()
}

/// Returns the links from `top` down to `bottom`, the last one marked if `cut`.
fn links(top: u64, bottom: u64, cut: bool) -> (Vec<u64>, Vec<bool>) {
    (bottom..=top).rev().map(|number| (number, cut && number == bottom)).unzip()
}

fn depth(depth: usize) -> ChainLimits {
    ChainLimits { depth, bytes: usize::MAX }
}

#[test]
fn the_defaults_are_sixteen_links_and_four_kilobytes() {
    assert_eq!(ChainLimits::default(), ChainLimits { depth: 16, bytes: 4096 });
    assert_eq!(LINK_COST, 88);
}

#[test]
fn a_chain_beyond_the_depth_limit_loses_its_deepest_link() {
    let limits = ChainLimits::default();
    assert_eq!(shape(&grow(1, 0, limits)), links(1, 1, false));
    assert_eq!(shape(&grow(2, 0, limits)), links(2, 1, false));
    assert_eq!(shape(&grow(16, 0, limits)), links(16, 1, false));
    assert_eq!(shape(&grow(17, 0, limits)), links(17, 2, true));
    assert_eq!(shape(&grow(40, 0, limits)), links(40, 25, true));
}

#[test]
fn a_chain_beyond_the_byte_limit_loses_its_deepest_link() {
    let limits = ChainLimits::default();
    // 16 links of 88 + 168 = 256 bytes are 4096.
    assert_eq!(shape(&grow(16, 168, limits)), links(16, 1, false));
    let top = link(16, 169).caused_by(grow(15, 168, limits), limits);
    assert_eq!(shape(&top), links(16, 2, true));
    // 15 links of 88 + 180 = 268 bytes are 4020, 16 are 4288.
    assert_eq!(shape(&grow(16, 180, limits)), links(16, 2, true));
    assert_eq!(shape(&grow(30, 180, limits)), links(30, 16, true));
    let exact = |bytes| ChainLimits { depth: 100, bytes };
    for n in 2..6_u64 {
        let cost = n as usize * 88;
        assert_eq!(shape(&grow(n, 0, exact(cost))), links(n, 1, false));
        assert_eq!(shape(&grow(n, 0, exact(cost - 1))), links(n, 2, true));
    }
}

#[test]
fn small_limits_keep_the_reason_itself() {
    for limits in [
        depth(0),
        depth(1),
        ChainLimits { depth: 9, bytes: 0 },
        ChainLimits { depth: 9, bytes: 87 },
        ChainLimits { depth: 9, bytes: 175 },
        ChainLimits { depth: 0, bytes: 0 },
    ] {
        assert_eq!(shape(&grow(2, 0, limits)), links(2, 2, true), "{limits:?}");
        assert_eq!(shape(&grow(5, 0, limits)), links(5, 5, true), "{limits:?}");
    }
    assert_eq!(shape(&grow(5, 0, depth(2))), links(5, 4, true));
    // A long message on top leaves no room for other links.
    let top = link(3, 5000).caused_by(grow(2, 0, depth(9)), ChainLimits::default());
    assert_eq!(shape(&top), links(3, 3, true));
    assert_eq!(top.message.as_deref().map(str::len), Some(5000));
}

#[test]
fn the_truncation_mark_moves_with_the_cut() {
    let cut = grow(5, 0, depth(3));
    assert_eq!(shape(&cut), links(5, 3, true));
    let wider = link(6, 0).caused_by(cut, depth(4));
    assert_eq!(shape(&wider), links(6, 3, true));
    let narrower = link(7, 0).caused_by(wider, depth(2));
    assert_eq!(shape(&narrower), links(7, 6, true));
}

#[test]
fn a_new_cause_replaces_the_old_one_and_its_mark() {
    let cut = link(9, 0).caused_by(link(8, 0), depth(1));
    assert_eq!(shape(&cut), links(9, 9, true));
    let again = cut.caused_by(link(8, 0), depth(2));
    assert_eq!(shape(&again), links(9, 8, false));
    let mut odd = grow(3, 0, depth(3));
    odd.truncated = true;
    let top = link(4, 0).caused_by(odd, depth(3));
    assert_eq!(shape(&top), links(4, 2, true));
}

#[test]
fn links_keep_their_fields_when_the_chain_is_cut() {
    let full = grow(4, 3, depth(9));
    let cut = link(5, 3).caused_by(full.clone(), depth(3));
    let kept: Vec<_> = cut.chain().skip(1).map(|link| link.message.clone()).collect();
    let before: Vec<_> = full.chain().take(2).map(|link| link.message.clone()).collect();
    assert_eq!(kept, before);
    assert_eq!(full.chain().count(), 4);
}
