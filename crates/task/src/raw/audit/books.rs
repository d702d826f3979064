//! The books of tasks and regions.

use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;

use super::account::Account;
use super::graves::{self, Epitaph};
use super::registry::Registry;
use super::{Owner, RegionRefOwner};
use crate::raw::owner::TaskOwner;
use crate::raw::{Blueprint, Header, Word};

/// Whose a reference is.
#[derive(Clone, Copy)]
pub(crate) struct Tag(Owner);

impl Tag {
    pub(crate) fn new(owner: Owner) -> Tag {
        Tag(owner)
    }

    pub(crate) fn of_clone(self) -> Owner {
        self.0.of_clone()
    }

    pub(crate) fn owner(self) -> Owner {
        self.0
    }

    pub(crate) fn set(&mut self, owner: Owner) {
        self.0 = owner;
    }
}

/// By the numbers of owners.
const OWNERS: [&str; 12] = [
    "list", "handle", "context", "waker", "joiner", "entry", "poll", "reserve", "alarm", "failure",
    "probe", "call",
];
/// Of these there is one at most.
const SINGLE: [Owner; 3] = [Owner::List, Owner::Handle, Owner::Poll];
/// Those that the runtime has, and not the program: none are left when it has ended.
const OWN: [Owner; 7] = [
    Owner::List,
    Owner::JoinWaker,
    Owner::Entry,
    Owner::Poll,
    Owner::Reserve,
    Owner::Alarm,
    Owner::Call,
];

/// What is known of a task, also when it is gone.
pub(super) struct Record {
    at: usize,
    id: u64,
    region: u64,
    /// A copy: how often a name is shared is visible.
    name: Option<String>,
    /// The type of its future, which says where it was written.
    body: &'static str,
    pub(super) account: Account,
    listed: AtomicBool,
    registry: Registry,
}

impl Record {
    /// Why nobody should have it any more, though the runtime has ended.
    pub(super) fn is_left(&self) -> bool {
        let own = OWN.iter().any(|owner| self.account.of(*owner as usize) > 0);
        own || self.account.sum() == 0
    }

    pub(super) fn fail(&self, why: &str) -> ! {
        graves::fail(&format!("{self}: {why}; {}", self.account))
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {} of region {}", self.id, self.region)?;
        if let Some(name) = &self.name {
            write!(f, " {name:?}")?;
        }
        write!(f, " ({})", self.body)
    }
}

/// The books of a task.
pub(crate) struct Books {
    alive: graves::Alive,
    record: Arc<Record>,
}

impl Books {
    /// Of a new cell, to be at that place: the region's, the handle's and the context's references
    /// are on the books; the first entry is entered when it is made.
    pub(crate) fn open<F>(plan: &Blueprint, at: NonNull<Header>, _: PhantomData<F>) -> Books {
        let registry = plan.registry.clone();
        let account = Account::new(&OWNERS);
        for owner in [Owner::List, Owner::Handle, Owner::Context] {
            account.enter(owner as usize, 1, 1, || None).expect("they are the first");
        }
        let record = Arc::new(Record {
            at: at.addr().get(),
            id: plan.id,
            region: plan.owner.id(),
            name: plan.attrs.as_ref().and_then(|attrs| attrs.name.as_deref()).map(String::from),
            body: type_name::<F>(),
            account,
            listed: AtomicBool::new(false),
            registry,
        });
        record.registry.add(record.at, record.clone());
        Books { alive: graves::Alive::new(), record }
    }

    /// So many references of this owner were counted.
    pub(crate) fn enter(&self, word: &Word, owner: Owner, more: u32) {
        self.check_alive();
        let most = if SINGLE.contains(&owner) { 1 } else { u64::MAX };
        let account = &self.record.account;
        let entered = account.enter(owner as usize, more.into(), most, || word.references());
        entered.unwrap_or_else(|why| self.record.fail(&why));
    }

    /// A reference of this owner is about to be given up.
    pub(crate) fn strike(&self, word: &Word, owner: Owner) {
        self.strike_some(word, owner, 1);
    }

    fn strike_some(&self, word: &Word, owner: Owner, fewer: u32) {
        self.check_alive();
        let account = &self.record.account;
        let struck = account.strike(owner as usize, fewer.into(), || word.references());
        struck.unwrap_or_else(|why| self.record.fail(&why));
    }

    /// A reference goes from one owner to another.
    pub(crate) fn shift(&self, from: Owner, to: Owner) {
        self.check_alive();
        let shifted = self.record.account.shift(from as usize, to as usize);
        shifted.unwrap_or_else(|why| self.record.fail(&why));
    }

    /// A poll is about to end, and to give up its reference and what it has in reserve (rule 4).
    pub(crate) fn end_poll(&self, word: &Word, reserve: u32) {
        let on_books = self.record.account.of(Owner::Reserve as usize);
        if on_books != reserve.into() {
            self.record.fail(&format!("the poll has {reserve} in reserve"));
        }
        self.strike_some(word, Owner::Reserve, reserve);
        self.strike(word, Owner::Poll);
    }

    pub(crate) fn check_alive(&self) {
        self.alive.check(|| graves::of(std::ptr::from_ref(self).addr()));
    }

    /// The last reference was given up, and the cell is freed (rule 3).
    pub(crate) fn close(&self, word: &Word) {
        self.check_alive();
        let record = &self.record;
        let counted = word.references();
        if record.account.sum() > 0 || counted.is_none_or(|counted| counted > 1) {
            record.fail(&format!("it is freed, and its word counts {counted:?}"));
        }
        if record.listed.load(SeqCst) {
            record.fail("it is freed while it is on the list of its region");
        }
        record.registry.remove(record.at);
        graves::announce(record.at, Epitaph::new(record.to_string(), record.registry.number()));
    }

    /// What is known of the task, and who has it.
    pub(crate) fn describe(&self) -> String {
        format!("{}: {}", self.record, self.record.account)
    }
}

/// The tasks on a region's list.
pub(crate) struct Members {
    count: u64,
}

impl Members {
    pub(crate) fn open() -> Members {
        Members { count: 0 }
    }

    /// A task comes to the list of a region that counts so many live ones.
    pub(crate) fn joins(&mut self, task: &Header, live: u64) {
        self.count += 1;
        let record = &task.books.record;
        task.books.check_alive();
        if record.listed.swap(true, SeqCst) {
            record.fail("it is on a list twice");
        }
        if self.count > live {
            record.fail(&format!("its region lists {} tasks and counts {live}", self.count));
        }
    }

    /// A task goes off the list.
    pub(crate) fn leaves(&mut self, task: &Header) {
        let record = &task.books.record;
        task.books.check_alive();
        if !record.listed.swap(false, SeqCst) || self.count == 0 {
            record.fail("it is taken off a list that it is not on");
        }
        self.count -= 1;
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }
}

/// The books of a region's references.
pub(crate) struct HomeBooks {
    region: u64,
    account: Account,
}

impl HomeBooks {
    pub(crate) fn open(region: u64) -> HomeBooks {
        HomeBooks { region, account: Account::new(&["cell", "reserve"]) }
    }

    fn fail(&self, why: &str) -> ! {
        graves::fail(&format!("references to region {}: {why}; {}", self.region, self.account))
    }

    /// So many references were counted.
    pub(crate) fn enter(&self, counted: impl FnOnce() -> usize, owner: RegionRefOwner, more: u32) {
        let counted = || Some(counted() as u64);
        let entered = self.account.enter(owner as usize, more.into(), u64::MAX, counted);
        entered.unwrap_or_else(|why| self.fail(&why));
    }

    /// So many references are about to be given up.
    pub(crate) fn strike(
        &self,
        counted: impl FnOnce() -> usize,
        owner: RegionRefOwner,
        fewer: u32,
    ) {
        let counted = || Some(counted() as u64);
        let struck = self.account.strike(owner as usize, fewer.into(), counted);
        struck.unwrap_or_else(|why| self.fail(&why));
    }

    /// A reference goes from one owner to another.
    pub(crate) fn shift(&self, from: RegionRefOwner, to: RegionRefOwner) {
        let shifted = self.account.shift(from as usize, to as usize);
        shifted.unwrap_or_else(|why| self.fail(&why));
    }
}

impl Drop for HomeBooks {
    fn drop(&mut self) {
        if self.account.sum() > 0 {
            self.fail("the region is freed");
        }
    }
}
