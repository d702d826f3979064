//! Witnesses: statements about how far a task's cancel has come, kept until they are released.
//!
//! A witness outlives its task. One may follow another if nothing has gone back: same task, region
//! and epoch, phase and severity not lower, looked at in this order.

use crate::abi::{AsxRegionId, AsxTaskId, AsxWitnessId};
use crate::error::{Bad, Checked, Field, Why, check, field};
use crate::guard::{self, Look, Out};
use crate::info;
use crate::state::Core;
use asx_kernel::arena::Key;
use asx_kernel::cancel::{Kind, Phase, Reason, Witness};
use asx_kernel::handle::{Handle, Tag};
use asx_kernel::status::Status;
use asx_kernel::time::Time;
use asx_kernel::world::Answer;
use core::mem::size_of;

/// The content of a witness.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AsxWitnessInfo {
    /// Set by the caller: sizeof(asx_witness_info).
    pub struct_size: u32,
    /// How far the cancel has come: ASX_CANCEL_.
    pub phase: i32,
    /// Why, as strengthened so far: ASX_CANCEL_.
    pub kind: i32,
    /// Zero.
    pub reserved: u32,
    /// The task that was cancelled.
    pub task: AsxTaskId,
    /// The task's region.
    pub region: AsxRegionId,
    /// Which cancel of the task: 1.
    pub epoch: u64,
    /// The time of the request.
    pub time: u64,
}

export! {
    /// Takes a witness of the progress of the task's cancel. It does not change later.
    ///
    /// - Parameters: `out` is writable.
    /// - Ownership: the witness is the caller's until asx_witness_release.
    /// - Returns: ASX_OK; ASX_E_EMPTY when the task was not cancelled; ASX_E_INVALID_ARGUMENT;
    ///   ASX_E_STALE_HANDLE; ASX_E_RESOURCE_EXHAUSTED when four for each of `max_tasks` were not
    ///   released, or a pool is used up; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_task_witness(rt, task: AsxTaskId, out: *mut AsxWitnessId) {
        let task = task.id()?;
        let out = Out::new(out)?;
        |core| {
            core.room_for_witness()?;
            core.prepare(rt, 0)?;
            let witness = core.world.kept_task(task)?.witness.ok_or(Status::Empty)?;
            core.witnesses.try_reserve(1).map_err(|_| Status::ResourceExhausted)?;
            let phase = witness.phase;
            let key = core.witnesses.insert(witness).map_err(|_| Status::ResourceExhausted)?;
            out.set(AsxWitnessId::of(key, phase));
            Ok(())
        }
    }

    /// Reads a witness.
    ///
    /// - Parameters: `info` begins with its struct_size.
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION;
    ///   ASX_E_REENTRANT.
    fn asx_witness_get_info(rt, witness: AsxWitnessId, info: *mut AsxWitnessInfo) {
        let key = witness.key()?;
        let info = Look::new(info)?;
        |core| {
            core.check_phase(key, witness, "witness")?;
            let found = core.witness(key, witness)?;
            info.set(AsxWitnessInfo {
                struct_size: 0,
                phase: found.phase as i32,
                kind: found.reason.kind as i32,
                reserved: 0,
                task: core.task_handle(found.task),
                region: core.region_handle(found.region),
                epoch: found.epoch,
                time: found.reason.timestamp.as_nanos(),
            })
        }
    }

    /// Checks whether a witness may follow another.
    ///
    /// - Returns: ASX_OK; ASX_E_WITNESS_TASK_MISMATCH, ASX_E_WITNESS_REGION_MISMATCH,
    ///   ASX_E_WITNESS_EPOCH_MISMATCH, ASX_E_WITNESS_PHASE_REGRESSION or
    ///   ASX_E_WITNESS_REASON_WEAKENED, the first in this order; ASX_E_INVALID_ARGUMENT;
    ///   ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_witness_validate(rt, witness: AsxWitnessId, next: AsxWitnessId) {
        let key = witness.key()?;
        let next_key = next.key()?;
        |core| {
            core.check_phase(key, witness, "witness")?;
            core.check_phase(next_key, next, "next")?;
            core.witness(key, witness)?.validate(core.witness(next_key, next)?)
        }
    }

    /// Checks whether a statement from elsewhere, such as a log or another process, may follow a
    /// witness. The handles in it are not looked up.
    ///
    /// - Parameters: `next` begins with its struct_size.
    /// - Returns: as asx_witness_validate; ASX_E_INVALID_ARGUMENT for an unknown phase or kind, or
    ///   an invalid handle.
    fn asx_witness_check(rt, witness: AsxWitnessId, next: *const AsxWitnessInfo) {
        let key = witness.key()?;
        let next = guard::prefix(next, size_of::<AsxWitnessInfo>(), 4096)?.over(NOTHING);
        let next = next.statement()?;
        |core| {
            core.check_phase(key, witness, "witness")?;
            core.witness(key, witness)?.validate(&next)
        }
    }

    /// Releases a witness. Its handle becomes stale.
    ///
    /// - Ownership: the witness is gone.
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION;
    ///   ASX_E_REENTRANT.
    fn asx_witness_release(rt, witness: AsxWitnessId) {
        let key = witness.key()?;
        |core| {
            core.witness(key, witness)?;
            core.witnesses.remove(key);
            Ok(())
        }
    }
}

const NOTHING: AsxWitnessInfo = AsxWitnessInfo {
    struct_size: 0,
    phase: 0,
    kind: 0,
    reserved: 0,
    task: AsxTaskId::NONE,
    region: AsxRegionId { bits: 0, generation: 0 },
    epoch: 0,
    time: 0,
};

impl AsxWitnessInfo {
    /// As the kernel has it. The reason has no message and no causes: only its kind counts.
    fn statement(&self) -> Checked<Witness> {
        field(self.reserved == 0, Field::Reserved)?;
        let task = self.task.id().map_err(|bad| Bad { field: Field::Task, ..bad })?;
        let region = self.region.id().map_err(|bad| Bad { field: Field::Region, ..bad })?;
        let phase = info::nth(&Phase::ALL, self.phase).map_err(|_| Bad::field(Field::Phase))?;
        let kind = info::nth(&Kind::ALL, self.kind).map_err(|_| Bad::field(Field::Kind))?;
        let reason = Reason::new(kind, region, Time::from_nanos(self.time));
        Ok(Witness { task, region, epoch: self.epoch, phase, reason })
    }
}

impl AsxWitnessId {
    fn of(key: Key, phase: Phase) -> AsxWitnessId {
        let handle = Handle::new(Tag::CancelWitness, phase.mask(), key);
        AsxWitnessId { bits: handle.word(), generation: handle.generation() }
    }

    fn handle(self) -> Handle {
        Handle::from_raw(self.bits, self.generation)
    }

    /// Where it is kept, if the handle is of this type.
    fn key(self) -> Checked<Key> {
        let mask = self.handle().mask();
        let known = mask.is_power_of_two() && mask <= Phase::Completed.mask();
        check(self.bits >> 48 == Tag::CancelWitness as u64 && known, Why::Handle)?;
        Ok(self.handle().key())
    }
}

impl Core {
    fn room_for_witness(&self) -> Answer {
        let room = (self.witnesses.len() as u64) < self.most_witnesses;
        if room { Ok(()) } else { Err(Status::ResourceExhausted) }
    }

    /// A witness: refused if its handle claims another phase.
    fn witness(&self, key: Key, handle: AsxWitnessId) -> Answer<&Witness> {
        let witness = self.witnesses.get(key).ok_or(Status::StaleHandle)?;
        check(handle.handle().mask() == witness.phase.mask(), Why::State)?;
        Ok(witness)
    }

    /// The same, with the argument it is refused by.
    fn check_phase(&mut self, key: Key, handle: AsxWitnessId, argument: &'static str) -> Answer {
        let wrong = self.witness(key, handle).err();
        self.blamed = wrong.map(|_| (argument, Why::State));
        wrong.map_or(Ok(()), Err)
    }
}
