//! Random scenarios: the native runtime and the model take the same steps, event by event.

use asx_conformance::{Host, Model, Native, SeedRun, parse_str, run_scenario};
use asx_kernel::rng::DetRng;
use std::fmt::Write as _;
use std::sync::Arc;

/// Draws scenarios.
struct Draw {
    rng: DetRng,
    names: usize,
}

/// `z` is inside `r`. `q`, which has a channel, is not: with its parent its slot would go, and the
/// model's handles with it.
const REGIONS: [&str; 4] = ["root", "r", "q", "z"];
const KINDS: [&str; 5] = ["User", "Timeout", "RaceLost", "ResourceUnavailable", "Shutdown"];

impl Draw {
    fn below(&mut self, count: usize) -> usize {
        self.rng.below(count)
    }

    fn one_of<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("n{}", self.names)
    }

    /// An op of a body; `deep` ones are in a shield or a loop. `own`: it has this receiver.
    fn body_op(&mut self, deep: bool, own: Option<&str>) -> String {
        let channel = self.one_of(&["c", "d", "s"]);
        let n = self.below(4);
        let name = self.name();
        match self.below(if deep { 15 } else { 20 }) {
            0 | 1 => r#"{ op = "yield" }"#.to_owned(),
            2 => r#"{ op = "checkpoint" }"#.to_owned(),
            3 => r#"{ op = "park" }"#.to_owned(),
            4 => format!(r#"{{ op = "work", polls = {n} }}"#),
            5 | 6 => format!(r#"{{ op = "sleep", for = "{n}ms" }}"#),
            7 | 8 => format!(r#"{{ op = "send", channel = "{channel}", value = {n} }}"#),
            9 | 10 => match own {
                Some(own) => format!(r#"{{ op = "recv", channel = "{own}" }}"#),
                None => format!(r#"{{ op = "try_recv", channel = "{channel}" }}"#),
            },
            11 => format!(r#"{{ op = "try_send", channel = "{channel}", value = {n} }}"#),
            12 => format!(r#"{{ op = "oblige", obligation = "{name}" }}"#),
            13 => format!(r#"{{ op = "spend", cost = {n} }}"#),
            14 => r#"{ op = "is_cancelled" }"#.to_owned(),
            15 => {
                let rest = if self.below(3) == 0 { ", tracked = true" } else { "" };
                format!(r#"{{ op = "reserve", channel = "{channel}", permit = "{name}"{rest} }}"#)
            }
            16 => format!(r#"{{ op = "shield", body = [{}] }}"#, self.body(2, true, own)),
            17 => format!(r#"{{ op = "cleanup", body = [{}] }}"#, self.body(2, true, own)),
            18 => {
                format!(r#"{{ op = "repeat", times = {n}, body = [{}] }}"#, self.body(2, true, own))
            }
            _ => match n {
                0 => r#"{ op = "fail" }"#.to_owned(),
                1 => r#"{ op = "panic" }"#.to_owned(),
                _ => r#"{ op = "stopping" }"#.to_owned(),
            },
        }
    }

    fn body(&mut self, most: usize, deep: bool, own: Option<&str>) -> String {
        let count = self.below(most + 1);
        let ops: Vec<_> = (0..count).map(|_| self.body_op(deep, own)).collect();
        ops.join(", ")
    }

    /// An op of the script. `tasks` are those spawned so far.
    fn step(&mut self, tasks: &mut Vec<String>) -> String {
        let n = self.below(6);
        let region = self.one_of(&REGIONS);
        let some_task = |draw: &mut Self, tasks: &Vec<String>| match tasks.is_empty() {
            true => None,
            false => Some(tasks[draw.below(tasks.len())].clone()),
        };
        match self.below(24) {
            0..=5 => {
                let name = self.name();
                let task = self.below(5);
                tasks.push(name.clone());
                let budget = match self.below(8) {
                    0 => format!(", deadline = \"{n}ms\""),
                    1 => format!(", polls = {n}"),
                    2 => format!(", cost = {n}"),
                    3 => format!(", priority = {}", 126 + n),
                    _ => String::new(),
                };
                let place = format!("in = \"{region}\"{budget}");
                format!(r#"{{ op = "spawn", task = "t{task}", as = "{name}", {place} }}"#)
            }
            6..=8 => match some_task(self, tasks) {
                Some(task) => {
                    let kind = self.one_of(&KINDS);
                    format!(r#"{{ op = "cancel", task = "{task}", kind = "{kind}" }}"#)
                }
                None => r#"{ op = "run" }"#.to_owned(),
            },
            9..=11 => match some_task(self, tasks) {
                Some(task) => format!(r#"{{ op = "wake", task = "{task}" }}"#),
                None => r#"{ op = "run" }"#.to_owned(),
            },
            12 => {
                format!(r#"{{ op = "try_recv", channel = "{}" }}"#, self.one_of(&["c", "d", "s"]))
            }
            13 => format!(r#"{{ op = "try_send", channel = "c", value = {n} }}"#),
            14 => {
                let name = self.name();
                format!(r#"{{ op = "arm", timer = "{name}", after = "{n}ms", in = "{region}" }}"#)
            }
            15 => {
                let name = self.name();
                let task = self.below(5);
                format!(
                    r#"{{ op = "defer", region = "{region}", task = "t{task}", as = "{name}" }}"#
                )
            }
            16 => format!(r#"{{ op = "advance", by = "{n}ms" }}"#),
            17 => format!(r#"{{ op = "run_for", by = "{n}ms" }}"#),
            18 | 19 => format!(r#"{{ op = "step", count = {} }}"#, n + 1),
            20 => match self.below(7) {
                2 => {
                    let modes = ["no_preference", "meet_deadlines", "drain_regions"];
                    format!(r#"{{ op = "suggest", mode = "{}" }}"#, self.one_of(&modes))
                }
                3 => {
                    let region = self.one_of(&REGIONS[1..]);
                    let after = n + 1;
                    format!(r#"{{ op = "close", region = "{region}", force_after = "{after}ms" }}"#)
                }
                4 => format!(r#"{{ op = "gate", region = "{region}", open = {} }}"#, n > 2),
                5 => {
                    let name = self.name();
                    format!(r#"{{ op = "oblige", obligation = "{name}", in = "{region}" }}"#)
                }
                0 => {
                    let kind = self.one_of(&KINDS);
                    let region = self.one_of(&REGIONS[1..]);
                    format!(r#"{{ op = "close", region = "{region}", kind = "{kind}" }}"#)
                }
                1 => format!(r#"{{ op = "end", region = "{}" }}"#, self.one_of(&REGIONS[1..])),
                _ => r#"{ op = "soft_stop" }"#.to_owned(),
            },
            _ => r#"{ op = "run" }"#.to_owned(),
        }
    }

    fn scenario(&mut self) -> String {
        let mut text = String::from("schema = 1\nid = \"x\"\ntitle = \"x\"\narea = \"x\"\n");
        let fail_fast = if self.below(2) == 0 { ", policy = \"fail_fast\"" } else { "" };
        let _ = writeln!(
            text,
            "setup = [\n{{ op = \"open\", as = \"r\"{fail_fast} }},\n\
             {{ op = \"open\", as = \"q\" }},\n\
             {{ op = \"open\", as = \"z\", in = \"r\" }},\n\
             {{ op = \"channel\", as = \"c\" }},\n\
             {{ op = \"channel\", as = \"d\", capacity = 2 }},\n\
             {{ op = \"channel\", as = \"s\", capacity = 2, in = \"q\" }},\n]"
        );
        let workers = 1 + self.below(3);
        let seeded = self.below(2) == 0;
        let config = format!(
            "[config]\nworkers = {workers}\ntie_break = \"{}\"\ncancel_streak_limit = {}\n",
            if seeded { "seeded" } else { "fifo" },
            1 + self.below(4)
        );
        let mut tasks = Vec::new();
        let count = 4 + self.below(20);
        text.push_str("steps = [\n");
        for channel in ["c", "d", "s"] {
            if self.below(2) == 0 {
                let region = self.one_of(&REGIONS);
                tasks.push(format!("rx{channel}"));
                let _ = writeln!(
                    text,
                    r#"  {{ op = "spawn", task = "rx{channel}", in = "{region}" }},"#
                );
            }
        }
        for _ in 0..count {
            let _ = writeln!(text, "  {},", self.step(&mut tasks));
        }
        let kind = self.one_of(&KINDS);
        let _ = writeln!(
            text,
            "  {{ op = \"run\" }},\n  {{ op = \"close\", region = \"r\", kind = \"{kind}\" }},\n\
             \x20 {{ op = \"close\", region = \"q\" }},\n\
             \x20 {{ op = \"run_for\", by = \"20ms\" }},\n]"
        );
        text.push_str(&config);
        // A channel has one receiver, and so one task that receives.
        let receivers = ["c", "d", "s"].map(|channel| (format!("rx{channel}"), Some(channel)));
        let others = (0..5).map(|task| (format!("t{task}"), None));
        for (task, own) in others.chain(receivers) {
            let body = self.body(5, false, own);
            let on_cancel = self.body(2, true, own);
            let _ = writeln!(text, "[tasks.{task}]\nbody = [{body}]\non_cancel = [{on_cancel}]");
        }
        text
    }
}

/// A run's journal. Of a task whose slot is gone the model no longer knows the region; natively its
/// handle keeps it.
fn journal(run: &SeedRun) -> Vec<String> {
    let line = |line: &String| match line.split_once(" region=") {
        Some((stale, _)) if stale.contains("stale_wake") => stale.to_owned(),
        _ => line.clone(),
    };
    run.journal.iter().map(line).collect()
}

#[test]
fn the_same_steps_on_every_host() {
    let mut model = Model::new();
    let mut native = Native::new();
    let mut lab = Native::in_lab();
    let count = std::env::var("ASX_RANDOM").ok().and_then(|n| n.parse().ok()).unwrap_or(500);
    for seed in 0..count {
        let text = Draw { rng: DetRng::new(seed, 0), names: 0 }.scenario();
        let scenario = parse_str("random", &text);
        let scenario = Arc::new(scenario.unwrap_or_else(|errors| panic!("{errors:?}\n{text}")));
        let theirs = journal(&run_scenario(&mut model, &scenario).runs[0]);
        for host in [&mut native, &mut lab] {
            let report = run_scenario(host, &scenario);
            // Of several workers of threads, which one goes on depends on who was woken: each op is
            // followed by a check of the record against the laws, and that is all that can be said.
            if host.name() == "native" && scenario.config.workers > 1 {
                continue;
            }
            let says = &report.runs[0].failures;
            let ours = journal(&report.runs[0]);
            let at = theirs.iter().zip(&ours).position(|(a, b)| a != b);
            let at = at.unwrap_or(theirs.len().min(ours.len()));
            let show = |journal: &[String]| {
                journal[at.saturating_sub(5)..journal.len().min(at + 3)].join("\n  ")
            };
            assert!(
                theirs == ours,
                "seed {seed}\n{text}\nmodel:\n  {}\n{}:\n  {}\nit says {says:?}",
                show(&theirs),
                host.name(),
                show(&ours),
            );
        }
    }
}
