//! Channels on a runtime that is not theirs, or is: the same three loops over each.
//!
//! Both traits are resolved at compile time; nothing is boxed and nothing is called through a
//! table.

use std::marker::PhantomData;

use super::Channels;
use super::meter::Clock;

/// A runtime on which channels are measured.
pub(super) trait Host: 'static {
    /// Runs the future as a task of a new runtime.
    fn run<T: Send + 'static>(root: impl Future<Output = T> + Send + 'static) -> T;
    /// Starts a task at once; the answer awaits its end.
    fn spawn(
        task: impl Future<Output = ()> + Send + 'static,
    ) -> impl Future<Output = ()> + Send + 'static;
}

/// A bounded channel.
pub(super) trait Link: 'static {
    type Sender: Clone + Send + 'static;
    type Receiver: Send + 'static;
    fn bounded(capacity: usize) -> (Self::Sender, Self::Receiver);
    /// The receiver outlives the senders.
    fn send(sender: &Self::Sender, number: u32) -> impl Future<Output = ()> + Send;
    /// `None` once all senders are gone.
    fn recv(receiver: &mut Self::Receiver) -> impl Future<Output = Option<u32>> + Send;
}

/// The channel `L` on the runtime `H`.
pub(super) struct Over<H, L>(PhantomData<(H, L)>);

impl<H: Host, L: Link> Channels for Over<H, L> {
    fn ping_pong(rounds: u32) -> f64 {
        H::run(async move {
            let (ping, mut pinged) = L::bounded(1);
            let (pong, mut ponged) = L::bounded(1);
            let clock = Clock::wall();
            let echo = H::spawn(async move {
                while let Some(number) = L::recv(&mut pinged).await {
                    L::send(&pong, number).await;
                }
            });
            let player = H::spawn(async move {
                for number in 0..rounds {
                    L::send(&ping, number).await;
                    assert_eq!(L::recv(&mut ponged).await, Some(number));
                }
                drop(ping);
                // Kept until the other side has seen the end: see `Link::send`.
                assert_eq!(L::recv(&mut ponged).await, None);
            });
            player.await;
            echo.await;
            clock.per(rounds)
        })
    }

    fn stream(producers: u32, capacity: usize, messages: u32) -> f64 {
        H::run(async move {
            let (sender, mut receiver) = L::bounded(capacity);
            let each = messages / producers;
            let clock = Clock::wall();
            let producing: Vec<_> = (0..producers)
                .map(|_| {
                    let sender = sender.clone();
                    H::spawn(async move {
                        for number in 0..each {
                            L::send(&sender, number).await;
                        }
                    })
                })
                .collect();
            drop(sender);
            let consumer = H::spawn(async move {
                let mut count = 0;
                while L::recv(&mut receiver).await.is_some() {
                    count += 1;
                }
                assert_eq!(count, each * producers);
            });
            consumer.await;
            for producer in producing {
                producer.await;
            }
            clock.per(each * producers)
        })
    }
}

/// tokio's own.
pub(super) struct Mpsc;

impl Link for Mpsc {
    type Sender = tokio::sync::mpsc::Sender<u32>;
    type Receiver = tokio::sync::mpsc::Receiver<u32>;

    fn bounded(capacity: usize) -> (Self::Sender, Self::Receiver) {
        tokio::sync::mpsc::channel(capacity)
    }

    async fn send(sender: &Self::Sender, number: u32) {
        sender.send(number).await.expect("a receiver");
    }

    async fn recv(receiver: &mut Self::Receiver) -> Option<u32> {
        receiver.recv().await
    }
}

/// smol's.
pub(super) struct AsyncChannel;

impl Link for AsyncChannel {
    type Sender = async_channel::Sender<u32>;
    type Receiver = async_channel::Receiver<u32>;

    fn bounded(capacity: usize) -> (Self::Sender, Self::Receiver) {
        async_channel::bounded(capacity)
    }

    async fn send(sender: &Self::Sender, number: u32) {
        sender.send(number).await.expect("a receiver");
    }

    async fn recv(receiver: &mut Self::Receiver) -> Option<u32> {
        receiver.recv().await.ok()
    }
}

pub(super) struct Flume;

impl Link for Flume {
    type Sender = flume::Sender<u32>;
    type Receiver = flume::Receiver<u32>;

    fn bounded(capacity: usize) -> (Self::Sender, Self::Receiver) {
        flume::bounded(capacity)
    }

    async fn send(sender: &Self::Sender, number: u32) {
        sender.send_async(number).await.expect("a receiver");
    }

    async fn recv(receiver: &mut Self::Receiver) -> Option<u32> {
        receiver.recv_async().await.ok()
    }
}

pub(super) struct Kanal;

impl Link for Kanal {
    type Sender = kanal::AsyncSender<u32>;
    type Receiver = kanal::AsyncReceiver<u32>;

    fn bounded(capacity: usize) -> (Self::Sender, Self::Receiver) {
        kanal::bounded_async(capacity)
    }

    async fn send(sender: &Self::Sender, number: u32) {
        sender.send(number).await.expect("a receiver");
    }

    async fn recv(receiver: &mut Self::Receiver) -> Option<u32> {
        receiver.recv().await.ok()
    }
}
