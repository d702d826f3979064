//! The part of each `--help` text below the options: details, exit status, examples.
//!
//! Every line below `Examples:` that begins with `asx` is a command that works; the tests run all
//! of them. `my.toml` is a scenario file, `run.asxt` and `run.jsonl` are traces.

pub(crate) const ASX: &str = "Without a command, `asx` runs the tour.

Exit status:
  0  success
  1  something did not hold
  2  the command line or its input is unusable

Examples:
  asx tour                          see what asx does, in less than a minute
  asx run my.toml                   run a scenario and check what it expects
  asx run my.toml --verbose         the same, with the journal
  asx explore my.toml --expect      run it under many schedules
  asx run my.toml --trace my.asxt   write its trace
  asx replay my.asxt                run it again and compare
  asx trace verify my.asxt          check the trace
  asx trace report my.asxt --html my.html
                                    draw the trace as a page
  asx status FULL                   explain a status";

pub(crate) const TOUR: &str = "\
A small shop runs on threads, then in the lab under many schedules and with a cancel at every await.
Then it runs with a planted bug, which the lab finds, shrinks, replays and records. The trace and
the page of that run are written to target/asx-tour, or to the folder for temporary files.

Exit status:
  0  success
  1  the replayed schedule fails, as it did in the tour
  2  the token is unusable

Examples:
  asx tour";

pub(crate) const CONFORM: &str = "\
A scenario is a TOML file: operations, expectations, and the fingerprint of the journal. Lines that
the host cannot express are skipped and named, and the rest is run; a scenario of which it has
nothing is skipped with the reason. A failure is shown with the line of the file, the expected and
the actual value, and the command that reproduces it.

The hosts native-defaults, web-defaults and web-silent have the settings of programs: the default
governor, the default interval of the clock, and no events.

For each failure --out gets a folder ID-SEED-HOST with the script, the journal and host events,
those of the same run on the model (for the model: on native or web), difference.txt and
summary.json.

Exit status:
  0  every scenario that ran passed
  1  a scenario failed
  2  no scenario matches, or the folder cannot be read

Examples:
  asx conform --filter 'ch-*' --json
  asx conform --host native --filter 'tm-*'
  asx conform --fixtures my/scenarios
  asx conform --list";

pub(crate) const PARITY: &str = "\
Every scenario runs on every host, under each of its seeds. Then every two hosts are compared on the
scenarios that both can express: outcomes of tasks, phases of cancels, obligations, quiescence, the
journal and its fingerprint. Events that only one host has are recorded and not compared. If two
hosts cannot express the same lines, each is compared with the model without its lines; the column
`in part` counts these comparisons.

Hosts are model, native, lab, web and c. The web host runs in headless Chromium if `cargo xtask web`
has prepared it (beside this program, or in the folder that ASX_WEB names), else in this program
over an event loop without a browser. The report says which; --place demands one. Any other name is
an external host with its record in a file (--from): JSON lines as --record writes them, one for
each scenario, seed and trace codec, with every mandatory field, null where there is no value. An
external host may leave out scenarios, or give a reason in `skipped`, but must cover all whose ids
begin with `parity-`.

A record also has the compiler, commit and lockfile of the host, the verdict, and the class of a
difference: none, intentional (the host cannot express the scenario), regression, spec_defect (only
the model differs from the scenario), harness_defect (the codecs disagree).

For each difference --out gets a folder with both logs, difference.txt and summary.json.

Exit status:
  0  the hosts agree
  1  they differ
  2  a host is unknown or has no browser, a record is unusable, or there is nothing to compare

Examples:
  asx parity --filter 'parity-w*'
  asx parity --host model,native,lab --filter 'parity-w*' --out differences
  asx parity --host native,lab --record records --filter 'parity-w*'
  asx parity --host native,web --filter 'parity-w*'
  asx parity --host native,web,c --place browser --filter 'parity-w*'
  asx parity --host native,moon --from moon=moon.jsonl --filter 'parity-w*'";

pub(crate) const RUN: &str = "\
The verdict comes first. --verbose adds the journal, with the names that the file gives to things.
--trace writes the run for `asx trace`. --bless writes the fingerprint of the run into the file,
once everything else holds.

Exit status:
  0  everything that the file expects held
  1  something did not
  2  the file cannot be read

Examples:
  asx run tm-cancel-001 --verbose   a built-in scenario, by id
  asx run my.toml --seed 4
  asx run my.toml --bless
  asx run my.toml --seed 4 --trace my.jsonl";

pub(crate) const TRACE: &str = "\
Traces are written by `asx run`, `asx explore`, `asx replay`, and by tests that fail in the lab.

Exit status:
  0  success
  1  something does not hold
  2  the input is unusable

Examples:
  asx trace verify run.asxt --strict
  asx trace show run.asxt --task 1
  asx trace diff before.asxt after.asxt
  asx trace digest run.asxt
  asx trace convert run.asxt run.jsonl
  asx trace report --html run.html run.asxt
  asx trace export --perfetto run.json run.asxt";

pub(crate) const EXPLORE: &str = "\
A run is the real runtime on the lab's workers; a strategy makes every choice that the laws leave
open. A run fails if a law does not hold. With --expect it also fails if an operation or [expect]
has another result than the scenario says, as in `asx run`. Fingerprints and per-seed `orders` are
left out, since they describe the schedule of one seed. A failing run is printed with a replay token
for `asx replay` and `asx shrink`; the token is valid until the scenario is edited.

The default strategy runs every schedule if there are few enough, and random ones otherwise. The
verdict says how many journals were distinct, and whether that was every schedule there is.

--trace and --report write the first run that failed, shrunk; nothing if none does.

--resume keeps the results in a file, written every two seconds and at the end. A search that was
interrupted resumes there, as does one with more --seeds. A file that is damaged or belongs to
another search is refused and not changed. Parts of a search (--shard) can run on several machines,
each with its own file, and be merged.

Exit status:
  0  no run failed
  1  a run failed
  2  the scenario, a token or a file is unusable

Examples:
  asx explore sc-steal-001 --seeds 200 --jobs 2
  asx explore channel-two-phase-001 --expect
  asx explore my.toml --expect --trace failed.asxt --report failed.html
  asx explore my.toml --seeds 1000 --shard 0/2 --resume part0.json
  asx explore my.toml --seeds 1000 --shard 1/2 --resume part1.json
  asx explore --merge part0.json part1.json
  asx explore --all --twice --seeds 1";

pub(crate) const REPLAY: &str = "\
With a trace: runs its scenario again, on the same host, under the same seed and schedule, and
compares event by event while the run continues. The first difference ends it (REPLAY_MISMATCH),
with both sides, the line of the trace, and the digests so far. The scenario is the file that the
trace names if it exists, else the built-in one, or that of --scenario.

With a token: runs that schedule of the scenario again. --verbose shows its journal. The token has
the workers and --expect of its search; it is refused if the scenario is another one or was edited.

Exit status:
  0  the run is the same; nothing failed
  1  it differs; it fails again
  2  the trace, the scenario, the token or a file is unusable

Examples:
  asx replay run.asxt
  asx replay run.jsonl --scenario my.toml --json
  asx replay channel-two-phase-001 675a6778e2d5.e.AQEAAAADAAIBhE9J
  asx replay channel-two-phase-001 675a6778e2d5.e.AQEAAAADAAIBhE9J --report run.html";

pub(crate) const SHRINK: &str = "\
Removes forced choices from the schedule, one after another, while it still fails in the same way.

Exit status:
  0  nothing fails under this schedule
  1  it fails, and the shortest schedule that was found is shown
  2  the scenario or the token is unusable

Examples:
  asx shrink channel-two-phase-001 675a6778e2d5.e.AQEAAAADAAIBhE9J";

pub(crate) const STATUS: &str = "\
Exit status:
  0  the status is known
  2  it is not; similar names are shown

Examples:
  asx status FULL
  asx status 102
  asx status";

pub(crate) const COMPLETIONS: &str = "\
Where shells look for the script:
  bash        ~/.local/share/bash-completion/completions/asx
  zsh         a file _asx in a folder of $fpath
  fish        ~/.config/fish/completions/asx.fish
  elvish      a line `eval (asx completions elvish | slurp)` in ~/.config/elvish/rc.elv
  powershell  a line `asx completions powershell | Out-String | Invoke-Expression` in $PROFILE

Exit status:
  0  always

Examples:
  asx completions bash > ~/.local/share/bash-completion/completions/asx
  asx completions zsh > ~/.zfunc/_asx
  asx completions fish > ~/.config/fish/completions/asx.fish
  asx completions powershell > asx.ps1";

pub(crate) const MAN: &str = "\
Writes asx.1 and one page for each command, such as asx-explore.1.

Exit status:
  0  the pages were written
  2  the folder cannot be written

Examples:
  asx man ~/.local/share/man/man1";
