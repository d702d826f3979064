//! Every scenario leaves a trace that the strictest look finds nothing wrong with.

use asx_conformance::{Expressible, Host, Model, Native, Record, corpus, expressible, parse_str};
use asx_trace::{Codec, End, Header, Reader, Writer, verify};
use std::sync::Arc;

fn trace(codec: Codec, host: &str, id: &str, workers: usize, record: &Record) -> Vec<u8> {
    let complete = record.events.first().is_none_or(|event| event.seq == 0);
    let header = Header { workers: workers as u64, complete, ..Header::new(id, host) };
    let mut writer = Writer::new(Vec::new(), codec, &header).unwrap();
    for event in &record.events {
        writer.write(&(*event).into()).unwrap();
    }
    let recorded = record.recorded;
    let digest = record.digest;
    let lost = recorded - record.events.len() as u64;
    writer.write(&End { recorded, lost, digest, choices: 0 }.into()).unwrap();
    writer.finish().unwrap()
}

#[test]
fn every_scenario_leaves_a_trace_the_laws_allow_on_every_host() {
    let hosts: [&mut dyn Host; 3] = [&mut Model::new(), &mut Native::new(), &mut Native::in_lab()];
    let mut wrong = Vec::new();
    let mut checked = 0;
    for host in hosts {
        for fixture in corpus() {
            let scenario = Arc::new(parse_str(&fixture.file, &fixture.text).unwrap());
            let Ok(Expressible { scenario, .. }) = expressible(host, &scenario) else { continue };
            host.start(&scenario, scenario.seeds[0]);
            for step in scenario.setup.iter().chain(scenario.steps.iter()) {
                host.apply(&step.op);
            }
            let record = host.record();
            let strict = record.recorded == record.events.len() as u64;
            for codec in [Codec::Json, Codec::Binary] {
                let workers = scenario.config.workers;
                let bytes = trace(codec, host.name(), &scenario.id, workers, &record);
                let report = verify(&mut Reader::open(&bytes[..]).unwrap(), strict);
                for violation in report.violations {
                    wrong.push(format!("{} {} {violation}", host.name(), scenario.id));
                }
                if strict {
                    assert_eq!(report.digest, record.digest, "{}", scenario.id);
                }
                checked += 1;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 500, "{checked}");
}
