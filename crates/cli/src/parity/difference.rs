//! Where two hosts did not do the same, and what is left of it: a folder with both logs.

use std::fmt;
use std::fs;
use std::path::Path;

use asx_conformance::parity::{Run, Which};

/// Two hosts that did not do the same.
pub(super) struct Difference {
    pub(super) which: Which,
    pub(super) hosts: [String; 2],
    /// What it is taken for.
    pub(super) delta: &'static str,
    /// In what they differ.
    what: Vec<&'static str>,
    /// The first event of the journal in which they differ, and what each has there.
    first: Option<(usize, [Option<String>; 2])>,
    logs: [String; 2],
}

impl Difference {
    /// Compares two runs of a scenario.
    pub(super) fn between(
        which: Which,
        hosts: [&str; 2],
        [one, other]: [&Run; 2],
    ) -> Option<Difference> {
        let parts = [
            ("outcomes", one.outcomes != other.outcomes),
            ("cancel phases", one.of_kind("cancel_") != other.of_kind("cancel_")),
            ("obligations", one.of_kind("obligation_") != other.of_kind("obligation_")),
            ("quiescence", one.not_quiescent != other.not_quiescent),
            ("journal", one.journal != other.journal),
            ("fingerprint", (&one.digests, one.events) != (&other.digests, other.events)),
            ("codecs", !one.codecs_agree() || !other.codecs_agree()),
        ];
        let what: Vec<_> =
            parts.iter().filter(|(_, differs)| *differs).map(|(part, _)| *part).collect();
        if what.is_empty() {
            return None;
        }
        let longest = one.journal.len().max(other.journal.len());
        let sides = |at: usize| [one, other].map(|run| run.journal.get(at).cloned());
        let first = (0..longest).map(|at| (at, sides(at))).find(|(_, [one, other])| one != other);
        let hosts = hosts.map(str::to_owned);
        let logs = [one.log(), other.log()];
        let delta = delta(&hosts, [one, other]);
        Some(Difference { which, hosts, delta, what, first, logs })
    }

    /// Writes what there is to see into a folder of its own in this one.
    pub(super) fn write(&self, folder: &Path, repro: &str) -> Result<(), String> {
        let ([one, other], (id, seed)) = (&self.hosts, &self.which);
        let folder = folder.join(format!("{id}-{seed}-{one}-{other}"));
        let first = self.first.as_ref().map(|(event, [one, other])| {
            serde_json::json!({ "event": event, "left": one, "right": other })
        });
        let summary = serde_json::json!({
            "fixture": id, "scenario": id, "seed": seed, "hosts": self.hosts, "what": self.what,
            "first_divergence": first, "delta": self.delta, "repro": repro,
        });
        let files = [
            (format!("{one}.log"), self.logs[0].clone()),
            (format!("{other}.log"), self.logs[1].clone()),
            ("difference.txt".into(), self.to_string()),
            ("summary.json".into(), format!("{summary:#}\n")),
        ];
        let failed = |error| format!("{}: {error}", folder.display());
        fs::create_dir_all(&folder).map_err(failed)?;
        files.iter().try_for_each(|(name, text)| fs::write(folder.join(name), text)).map_err(failed)
    }
}

/// What a difference is taken for: see [`asx_conformance::parity::DELTAS`].
fn delta(hosts: &[String; 2], runs: [&Run; 2]) -> &'static str {
    if runs.iter().any(|run| !run.codecs_agree()) {
        return "harness_defect";
    }
    let model = hosts.iter().position(|host| host == "model");
    match model.map(|at| [runs[at], runs[1 - at]].map(|run| run.failures.is_empty())) {
        Some([false, true]) => "spec_defect",
        _ => "regression",
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([one, other], (id, seed)) = (&self.hosts, &self.which);
        let what = self.what.join(", ");
        writeln!(f, "DIFFERENT {id}, seed {seed}, on {one} and {other}: {what}")?;
        if let Some((event, sides)) = &self.first {
            writeln!(f, "  they part at event {event}")?;
            for (host, line) in self.hosts.iter().zip(sides) {
                writeln!(f, "    {host:<12} {}", line.as_deref().unwrap_or("(the end)"))?;
            }
        }
        Ok(())
    }
}
