//! Prints a C program that makes the calls of the corpus again, as the host `c` made them, and
//! wants the same fingerprints: `cargo run -p asx-conformance --example c_program`. Compiled with
//! `FAULTS` it does so with an allocator that fails.

use asx_conformance::{corpus, parse_str};
use std::sync::Arc;

/// Longer ones show nothing more in C than they do through the host.
const LONGEST: usize = 200_000;

const TOP: &str = r#"/* Made from the conformance corpus. */
#include "check.h"

#ifdef FAULTS
#include "faults.h"
#else
#define FIXTURE(name) name()
#define BEGIN() (void)0
#define END() puts("fixtures: ok")

#define WANT(wanted, call)                                                                         \
    do {                                                                                           \
        asx_status got_ = (call);                                                                  \
        if (got_ != (wanted)) {                                                                    \
            fprintf(stderr, "%s: %s answers %s\n", __func__, #call, asx_status_name(got_));        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define SAME(id, got, wanted)                                                                      \
    do {                                                                                           \
        if ((got) != (wanted)) {                                                                   \
            fprintf(stderr, "%s: another fingerprint\n", id);                                      \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#endif

static asx_region_id out_region_id;
static asx_task_id out_task_id;
static asx_obligation_id out_obligation_id;
static asx_timer_handle out_timer_handle;
static int32_t out_int;
static uint64_t out_number;
static unsigned char out_bytes[8];

"#;

fn main() {
    let mut names = Vec::new();
    print!("{TOP}");
    for fixture in corpus() {
        let Ok(scenario) = parse_str(&fixture.file, &fixture.text) else { continue };
        let Some(seed) = scenario.seeds.first().copied() else { continue };
        let name = format!("f{}", names.len());
        let text = asx_conformance::c::function(&Arc::new(scenario), seed, &name);
        if let Some(text) = text.filter(|text| text.len() <= LONGEST) {
            println!("{text}");
            names.push(name);
        }
    }
    println!("int main(void)\n{{");
    println!("    (void)out_region_id; (void)out_task_id; (void)out_obligation_id;");
    println!("    (void)out_timer_handle; (void)out_int; (void)out_number; (void)out_bytes;");
    println!("    BEGIN();");
    names.iter().for_each(|name| println!("    FIXTURE({name});"));
    println!("    END();\n    return 0;\n}}");
}
