//! The guide to the formats is complete: a decoder built only from its tables reads the
//! examples, and the examples are valid traces.

use asx_trace::{Codec, Reader, Record, Writer, kind_code, verify};
use std::collections::BTreeMap;

const GUIDE: &str = include_str!("../../../../docs/TRACE.md");

fn block(language: &str) -> &'static str {
    let (_, rest) = GUIDE.split_once(&format!("```{language}\n")).expect("a block");
    rest.split("```").next().expect("its end")
}

/// Returns the bytes of the hex block, which has hex digits at the start of each line.
fn bytes() -> Vec<u8> {
    let hex = |line: &'static str| line.get(..51).unwrap_or(line);
    let words = block("hex").lines().map(hex).flat_map(str::split_whitespace);
    let digits: String = words.collect();
    let pair = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex digits");
    (0..digits.len()).step_by(2).map(pair).collect()
}

type Table = BTreeMap<u8, (String, Vec<(String, String)>)>;

/// Parses a table cell: the fields with their types.
fn fields(cell: &str) -> Vec<(String, String)> {
    let pair = |field: &str| field.trim().split_once(": ").map(|(a, b)| (a.into(), b.into()));
    cell.split(',').filter_map(pair).collect()
}

fn tables() -> Table {
    let tags = ["header", "choice", "label", "host", "mark", "end"];
    let mut table = Table::new();
    for line in GUIDE.lines().filter(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let Ok(code) = cells[1].parse() {
            table.insert(code, (cells[2].trim_matches('`').into(), fields(cells[3])));
        } else if let Some(at) = tags.iter().position(|tag| *tag == cells[1]) {
            table.insert(0xf0 + at as u8, (cells[1].into(), fields(cells[2])));
        }
    }
    table
}

/// A decoder of one payload, built only from the guide. It returns JSON lines.
struct Decoder<'a> {
    rest: &'a [u8],
    texts: Vec<String>,
}

impl Decoder<'_> {
    fn take(&mut self, count: usize) -> &[u8] {
        let (now, rest) = self.rest.split_at(count);
        self.rest = rest;
        now
    }

    fn byte(&mut self) -> u8 {
        self.take(1)[0]
    }

    fn number(&mut self) -> u64 {
        let byte = self.byte();
        let low = u64::from(byte & 0x7f);
        if byte < 0x80 { low } else { low | self.number() << 7 }
    }

    fn text(&mut self) -> String {
        let number = self.number() as usize;
        if number > 0 {
            return self.texts[number - 1].clone();
        }
        let length = self.number() as usize;
        let text = String::from_utf8(self.take(length).to_vec()).expect("UTF-8");
        if length <= 64 {
            self.texts.push(text.clone());
        }
        text
    }

    fn value(&mut self, of: &str) -> String {
        match of {
            "number" => self.number().to_string(),
            "number?" if self.byte() == 0 => "null".into(),
            "number?" => self.number().to_string(),
            "flag" => (self.byte() == 1).to_string(),
            "hash" => {
                let bytes = self.take(8).try_into().expect("eight");
                format!("\"{:016x}\"", u64::from_le_bytes(bytes))
            }
            "text" | "word" => format!("\"{}\"", self.text()),
            "pairs" => {
                let count = 0..self.byte();
                let pair = |_| {
                    let name = self.text();
                    let value = match self.byte() {
                        0 => "null".into(),
                        flag @ 1..=2 => (flag == 2).to_string(),
                        3 => self.number().to_string(),
                        _ => format!("\"{}\"", self.text()),
                    };
                    format!("\"{name}\":{value}")
                };
                format!("{{{}}}", count.map(pair).collect::<Vec<_>>().join(","))
            }
            other => panic!("unknown type {other}"),
        }
    }

    fn record(&mut self, table: &Table, seq: &mut u64, time: &mut u64) -> String {
        let tag = self.byte();
        let (name, fields) = table.get(&tag).expect("a tag of the tables");
        let mut line = match tag {
            0xf0 => "{\"record\":\"header\",\"version\":2".into(),
            0xf1.. => format!("{{\"record\":\"{name}\""),
            _ => {
                let bits = self.byte();
                assert_eq!(bits & 16, 0, "the example has no gaps");
                let step = if bits & 32 == 0 { 0 } else { self.number() };
                assert_eq!(step % 2, 0, "forward");
                *time += step / 2;
                let mut line = format!(
                    "{{\"record\":\"event\",\"seq\":{seq},\"time\":{time},\"event\":\"{name}\""
                );
                for (at, class) in ["task", "region", "timer", "channel"].iter().enumerate() {
                    let there = bits >> at & 1 == 1;
                    let id = if there { self.number().to_string() } else { "null".into() };
                    line += &format!(",\"{class}\":{id}");
                }
                *seq += 1;
                line
            }
        };
        for (field, of) in fields {
            line += &format!(",\"{field}\":{}", self.value(of));
        }
        line + "}\n"
    }
}

#[test]
fn a_decoder_built_from_the_guide_reads_the_binary_example() {
    let bytes = bytes();
    assert_eq!(&bytes[..7], b"ASXT\x02\xeb\x01");
    let payload = &bytes[7..bytes.len() - 8];
    assert_eq!(payload.len(), 235);
    let mut decoder = Decoder { rest: payload, texts: Vec::new() };
    let (mut lines, mut seq, mut time) = (String::new(), 0, 0);
    while !decoder.rest.is_empty() {
        lines += &decoder.record(&tables(), &mut seq, &mut time);
    }
    assert_eq!(lines, block("jsonl"));
}

/// The digest, as described in the guide.
struct State(u64);

const G: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(z: u64) -> u64 {
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

impl State {
    fn word(&mut self, word: u64) {
        self.0 = mix(self.0.rotate_left(23) ^ word).wrapping_add(G);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        for part in bytes.chunks(8) {
            self.word(part.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)));
        }
    }
}

#[test]
fn the_guide_describes_the_checksum_and_the_digest() {
    let bytes = bytes();
    let (payload, sum) = bytes[7..].split_at(235);
    let mut state = State(G);
    state.word(0);
    state.bytes(payload);
    assert_eq!(mix(state.0).to_le_bytes(), sum);
    // Event 0: region 1 opens without a parent.
    let mut state = State(G);
    [0, 0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0].into_iter().for_each(|word| state.word(word));
    // Event 5: it has a word as a field.
    let mut kernel = asx_kernel::digest::Digest::new();
    let mut ended = State(G);
    for record in Reader::open(&bytes[..]).expect("a trace").flatten() {
        let Record::Event(event) = record else { continue };
        let mut alone = asx_kernel::digest::Digest::new();
        event.absorb(&mut alone);
        if event.seq == 0 {
            assert_eq!(alone.value(), mix(state.0));
        }
        if event.seq == 5 {
            let head = [5, 2_000_000, 13, 1, 1, 1, 1, 0, 0, 0, 0];
            head.into_iter().for_each(|word| ended.word(word));
            ended.bytes(b"Err");
            assert_eq!(alone.value(), mix(ended.0));
        }
        event.absorb(&mut kernel);
    }
    let digest = format!("\"digest\":\"{:016x}\"", kernel.value());
    assert!(block("jsonl").contains(&digest), "{digest}");
    let mut link = State(G);
    [0, 1, 2, 1, 0, 16].into_iter().for_each(|word| link.word(word));
    let link = format!("\"decision_hash\":\"{:016x}\"", mix(link.0));
    assert!(block("jsonl").contains(&link), "{link}");
}

#[test]
fn both_examples_are_the_same_lawful_trace() {
    let (json, binary) = (block("jsonl").as_bytes(), bytes());
    for (bytes, other, codec) in
        [(json, &binary[..], Codec::Binary), (&binary[..], json, Codec::Json)]
    {
        let report = verify(&mut Reader::open(bytes).expect("a header"), true);
        assert_eq!(report.violations, []);
        let reader = Reader::open(bytes).expect("a header");
        let mut writer = Writer::new(Vec::new(), codec, reader.header()).expect("a writer");
        for record in reader {
            writer.write(&record.expect("a record")).expect("written");
        }
        assert_eq!(writer.finish().expect("finished"), other);
    }
}

#[test]
fn the_table_of_kinds_is_complete() {
    let table = tables();
    let kinds = table.iter().filter(|(code, _)| **code < 0xf0);
    let mut names = Vec::new();
    for (code, (name, _)) in kinds {
        assert_eq!(kind_code(name), Some(u64::from(*code)), "{name}");
        names.push(name.as_str());
    }
    assert_eq!(names, asx_kernel::journal::EventKind::NAMES);
    for word in asx_trace::EXHAUSTIBLE {
        assert!(GUIDE.contains(&format!("`{word}`")), "{word}");
    }
}
