//! One direction of a connection.

use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::net::SocketAddr;

use asx_kernel::rng::mix64;
use asx_runtime::net::Address;

/// Where an end of the bytes is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// There is none.
    None,
    /// It is on its way, behind all bytes.
    Sent,
    Arrived,
}

/// One direction of a connection: what is on its way, and what has come.
#[derive(Debug)]
pub(super) struct Pipe {
    /// The carrier. Even: see [`is_carrier`](super::is_carrier).
    pub(super) path: u64,
    /// What stands for its two ends in footprints.
    pub(super) sent: u64,
    pub(super) received: u64,
    /// Who sends, and who receives: not known before the connection is there.
    pub(super) from: Option<usize>,
    pub(super) to: Option<usize>,
    pub(super) from_address: Address,
    pub(super) to_address: Address,
    /// Where somebody listens, and whether this leads to there.
    pub(super) service: Option<SocketAddr>,
    pub(super) towards: bool,
    /// What is on its way, what has come, and how much each may be.
    pub(super) queue: VecDeque<u8>,
    pub(super) buffer: VecDeque<u8>,
    pub(super) send_room: usize,
    pub(super) recv_room: usize,
    /// The connection is asked for.
    pub(super) syn: bool,
    pub(super) fin: Mark,
    pub(super) rst: Mark,
    /// Segments that were delivered.
    pub(super) segments: u64,
    /// What is given to it arrives at once.
    pub(super) is_direct: bool,
    /// Nothing is delivered any more.
    pub(super) is_dead: bool,
    /// Nothing is delivered now: it is late, or there is no room among those who wait to be
    /// accepted.
    pub(super) is_held: bool,
    pub(super) is_parked: bool,
    /// It is late only because a segment was cut: the rest comes once the first piece was read.
    pub(super) is_chunked: bool,
    /// Whether its sender will give its peer up.
    pub(super) gives_up: bool,
    /// Whether the strategy may run its carrier.
    pub(super) is_enabled: bool,
}

impl Pipe {
    /// The direction of a connection with this name.
    pub(super) fn new(name: u64, from: Address, to: Address, is_direct: bool) -> Pipe {
        Pipe {
            path: mix64(name) & !1,
            sent: mix64(name ^ 0x73),
            received: mix64(name ^ 0x72),
            from: None,
            to: None,
            from_address: from,
            to_address: to,
            service: None,
            towards: false,
            queue: VecDeque::new(),
            buffer: VecDeque::new(),
            send_room: 0,
            recv_room: 0,
            syn: false,
            fin: Mark::None,
            rst: Mark::None,
            segments: 0,
            is_direct,
            is_dead: false,
            is_held: false,
            is_parked: false,
            is_chunked: false,
            gives_up: false,
            is_enabled: false,
        }
    }

    /// Whether there is something to deliver; `is_read`: its receiver is open.
    pub(super) fn is_deliverable(&self, is_read: bool) -> bool {
        if self.is_dead || self.is_held || self.is_parked {
            return false;
        }
        match self.queue.is_empty() {
            _ if self.syn => true,
            true => self.fin == Mark::Sent || self.rst == Mark::Sent,
            false => !is_read || self.free() > 0,
        }
    }

    /// How many more bytes may come.
    pub(super) fn free(&self) -> usize {
        self.recv_room.saturating_sub(self.buffer.len())
    }

    /// Takes bytes of several buffers to be sent: how many.
    pub(super) fn push(&mut self, buffers: &[IoSlice<'_>]) -> usize {
        let mut left = self.send_room.saturating_sub(self.queue.len());
        let all = left;
        for buffer in buffers {
            let count = buffer.len().min(left);
            self.queue.extend(&buffer[..count]);
            left -= count;
        }
        all - left
    }

    /// Copies what has come into several buffers: how many bytes.
    pub(super) fn copy(&self, buffers: &mut [IoSliceMut<'_>]) -> usize {
        let (mut front, mut back) = self.buffer.as_slices();
        let mut copied = 0;
        for buffer in buffers {
            let mut place = &mut buffer[..];
            while !place.is_empty() {
                if front.is_empty() {
                    (front, back) = (back, &[]);
                }
                if front.is_empty() {
                    return copied;
                }
                let count = place.len().min(front.len());
                let (here, rest) = std::mem::take(&mut place).split_at_mut(count);
                here.copy_from_slice(&front[..count]);
                (front, place) = (&front[count..], rest);
                copied += count;
            }
        }
        copied
    }

    /// Moves bytes on to where they are read.
    pub(super) fn carry(&mut self, count: usize) {
        let (front, back) = self.queue.as_slices();
        let of_front = count.min(front.len());
        self.buffer.extend(&front[..of_front]);
        self.buffer.extend(&back[..count - of_front]);
        self.queue.drain(..count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Through all ways in which bytes can lie in a ring, and buffers of all sizes.
    #[test]
    fn bytes_come_in_the_order_in_which_they_were_given() {
        let mut pipe = Pipe::new(1, Address::Unix(None), Address::Unix(None), false);
        (pipe.send_room, pipe.recv_room) = (7, 5);
        let mut given = 0_u8;
        let mut taken = 0_u8;
        for round in 0..500_usize {
            let bytes: Vec<u8> =
                (0..round % 4).map(|more| given.wrapping_add(more as u8)).collect();
            let (first, second) = bytes.split_at(bytes.len() / 2);
            let count = pipe.push(&[IoSlice::new(first), IoSlice::new(second)]);
            assert!(pipe.queue.len() <= 7);
            given = given.wrapping_add(count as u8);
            pipe.carry(pipe.queue.len().min(pipe.free()).min(round % 3));
            assert!(pipe.buffer.len() <= 5);
            let mut one = [0; 1];
            let mut two = [0; 2];
            let mut buffers = [IoSliceMut::new(&mut one), IoSliceMut::new(&mut two)];
            let count = pipe.copy(&mut buffers[round % 2..]);
            pipe.buffer.drain(..count);
            let read: Vec<u8> = match round % 2 {
                0 => one.into_iter().chain(two).take(count).collect(),
                _ => two.into_iter().take(count).collect(),
            };
            for byte in read {
                assert_eq!(byte, taken);
                taken = taken.wrapping_add(1);
            }
        }
        assert!(taken > 50);
    }
}
