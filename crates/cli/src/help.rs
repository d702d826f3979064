//! What `--help` says of each command below its options: what it means, what it writes, how it
//! ends.

/// Of the program.
pub(crate) const ASX: &str = "Without a command: a tour of less than a minute.

Exit status:
  0  all is well
  1  something did not hold
  2  the call or its input is unusable

Examples:
  asx                               a tour
  asx conform                       run the built-in scenarios
  asx conform --filter 'tm-*'       run some of them
  asx parity                        run them on several hosts and compare
  asx run my.toml --seed 4          run one file under one seed, with its journal
  asx run my.toml --bless           write its fingerprint
  asx run my.toml --trace my.asxt   write its trace
  asx replay my.asxt                run it again and compare
  asx explore my.toml               run it under many schedules
  asx trace verify my.asxt --strict check it against the laws
  asx trace report --html my.html my.asxt
                                    draw it
  asx status FULL                   explain a status
  asx completions bash              what a shell needs to complete all this";

/// Of `asx conform`.
pub(crate) const CONFORM: &str = "\
A scenario is a TOML file: what is done, what must come of it, and the fingerprint of the journal.
One that a host cannot express is skipped, with the reason. What does not hold is shown with the
line of the file, both sides, and the call that shows it again.

Of each failure --out has a folder ID-SEED-HOST with the script, the journal of the run, that of the
same run on the model (of the model: on native), difference.txt, and summary.json: fixture, seed,
host, contract, the id of the state it began with, and the call that makes the folder again.

Exit status:
  0  all that ran passed
  1  one failed
  2  no scenario matches, or the folder cannot be read

Examples:
  asx conform
  asx conform --filter 'ch-*' --json
  asx conform --host native
  asx conform --fixtures my/scenarios
  asx conform --list";

/// Of `asx parity`.
pub(crate) const PARITY: &str = "\
Each scenario is run on each host, under each of its seeds. Then every two hosts are compared, on
the scenarios that both can express: how tasks ended, the phases of cancels, which obligations were
closed and how, whether all came to rest, the journal, and its fingerprint. What only one host can
see (its turns, its bursts) is in its record, and is not compared.

Hosts are model, native, lab, web and c. The web is run in headless Chromium if `cargo xtask web`
has set that up (next to this program, or in the folder that ASX_WEB names), else in this program,
over an event loop without a browser; the report says which, and --place demands one. Any other name
is a host that is elsewhere, whose record is in a file (--from): JSON lines as --record writes them,
one for each scenario, seed and codec of traces, with every mandatory field; a field that there is
nothing for is null. It may leave out scenarios, or give the reason in `skipped`, but has to answer
for all whose ids begin with `parity-`.

A record also says what the host was built from and with (compiler, commit, lockfile), the verdict,
and what a difference is taken for: none, intentional (the host says it cannot express the
scenario), regression, spec_defect (only the model does not what the scenario says), harness_defect
(the codecs disagree).

Of each difference --out has a folder with both logs, difference.txt, and summary.json: the
scenario, the seed, where they part first, and the call that makes the folder again.

Exit status:
  0  they did the same
  1  they did not
  2  a host is unknown or has no browser, a record is unusable, or there is nothing to compare

Examples:
  asx parity
  asx parity --host model,native,lab --filter 'parity-*' --out differences
  asx parity --host native,lab --record records
  asx parity --host native,web
  asx parity --host native,web,c --place browser --filter 'parity-*'
  asx parity --host native,moon --from moon=moon.jsonl";

/// Of `asx run`.
pub(crate) const RUN: &str = "\
The journal is shown with the names that the file gives things. With --trace it is written as well,
for `asx trace`. --bless writes the fingerprint of the run into the file, once all else holds.

Exit status:
  0  all that the file expects held
  1  something did not
  2  the file cannot be read

Examples:
  asx run crates/conformance/fixtures/timer/tm-cancel-001.toml
  asx run tm-cancel-001             a built-in one, by id
  asx run my.toml --seed 4
  asx run my.toml --bless
  asx run my.toml --seed 4 --trace my.jsonl";

/// Of `asx trace`.
pub(crate) const TRACE: &str = "\
Traces are written by `asx run`, `asx explore`, `asx replay`, and by tests that fail in the lab.

Exit status:
  0  all is well
  1  something does not hold
  2  the input is unusable

Examples:
  asx trace verify run.asxt --strict
  asx trace show run.asxt --task 3
  asx trace diff before.asxt after.asxt
  asx trace digest run.asxt
  asx trace convert run.asxt run.jsonl
  asx trace report --html run.html run.asxt
  asx trace export --perfetto run.json run.asxt";

/// Of `asx explore`.
pub(crate) const EXPLORE: &str = "\
A run is the real runtime on the lab's workers; a strategy makes every free choice. What must hold
under any schedule are the laws; with --expect, what the script expects as well. A run that fails is
named by a seed and a token, for `asx replay` and `asx shrink`.

--trace and --report write the first run that failed, that of the lowest seed; nothing if none does.

--resume keeps what was seen in a file, every two seconds and at the end, each time as a whole: a
search that is cut off goes on from there, and one with more --seeds too. A file that is damaged, or
of another search, is refused and left alone. Parts of a search (--shard) can be run anywhere, each
with a file of its own, and be merged.

Exit status:
  0  none fails
  1  one fails
  2  the scenario, a token or a file is unusable

Examples:
  asx explore sched-steal-order-of-lanes --seeds 10000 --jobs 2
  asx explore my.toml --strategy dfs --expect
  asx explore my.toml --expect --trace failed.asxt --report failed.html
  asx explore my.toml --seeds 1000000 --shard 0/4 --resume part0.json
  asx explore --merge part0.json part1.json part2.json part3.json
  asx explore --all --twice --workers 3";

/// Of `asx replay`.
pub(crate) const REPLAY: &str = "\
Of a trace: runs its scenario again, on its host, under its seed and schedule, and compares event by
event, decisions among them, while the run goes on. The first that differs ends it
(REPLAY_MISMATCH), with both sides, the line of the trace, and the digests up to there. The scenario
is the file that the trace names, if it is there, else the built-in one, or that of --scenario.

With a token: shows the journal of the run. --workers and --expect must be those it was found with.

Exit status:
  0  the run is the same; nothing failed
  1  it is not; it fails again
  2  the trace, the scenario, the token or a file is unusable

Examples:
  asx replay run.asxt
  asx replay run.jsonl --scenario my.toml --json
  asx replay my.toml AQKKnAi0JAwCASDVGQ --expect
  asx replay my.toml AQKKnAi0JAwCASDVGQ --expect --trace run.asxt --report run.html";

/// Of `asx shrink`.
pub(crate) const SHRINK: &str = "\
Leaves out, one after another, what was decided otherwise than usual and does not matter.

Exit status:
  0  nothing fails under this schedule
  1  it fails, and the shortest schedule that was found is shown
  2  the scenario or the token is unusable

Examples:
  asx shrink my.toml AQKKnAi0JAwCASDVGQ --expect";

/// Of `asx status`.
pub(crate) const STATUS: &str = "\
Exit status:
  0  it is known
  2  it is not; those with similar names are shown

Examples:
  asx status FULL
  asx status 102
  asx status";

/// Of `asx completions`.
pub(crate) const COMPLETIONS: &str = "\
Where shells look for it:
  bash  ~/.local/share/bash-completion/completions/asx
  zsh   a file _asx in a folder of $fpath
  fish  ~/.config/fish/completions/asx.fish

Exit status:
  0  always

Examples:
  asx completions bash > ~/.local/share/bash-completion/completions/asx
  asx completions zsh > ~/.zfunc/_asx
  asx completions fish > ~/.config/fish/completions/asx.fish";
