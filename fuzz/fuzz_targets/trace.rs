//! Both codecs on any bytes: the result is an error with a position, or a trace that survives both
//! codecs with the same digest. No trace makes the checker panic.
#![no_main]

use asx_kernel::digest::Digest;
use asx_trace::{Codec, ErrorKind, Header, Reader, Record, Writer, verify};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    read(bytes);
    // Random checksums are almost never right, so also use the bytes as the payload of a block.
    if let Some(sealed) = sealed(bytes) {
        read(&sealed);
    }
});

fn read(bytes: &[u8]) {
    let Ok(reader) = Reader::open(bytes) else { return };
    let header = reader.header().clone();
    let mut records = Vec::new();
    for record in reader {
        match record {
            Ok(record) => records.push(record),
            Err(error) => {
                assert_eq!(error.record, records.len() as u64 + 1);
                break;
            }
        }
    }
    let _ = verify(&mut Reader::open(bytes).expect("as before"), true);
    let digests =
        [Codec::Json, Codec::Binary].map(|codec| there_and_back(codec, &header, &records));
    assert_eq!(digests[0], digests[1]);
}

/// Writes, reads and compares. Returns the digest of the events.
fn there_and_back(codec: Codec, header: &Header, records: &[Record]) -> u64 {
    let mut writer = Writer::new(Vec::new(), codec, header).expect("it was read");
    for record in records {
        writer.write(record).expect("it was read");
    }
    let bytes = writer.finish().expect("it was read");
    let mut reader = Reader::open(&bytes[..]).expect("it was written");
    assert_eq!(reader.header(), header);
    let mut back = reader.by_ref().map(|record| record.expect("it was written"));
    records.iter().for_each(|record| assert_eq!(back.next().as_ref(), Some(record)));
    verify(&mut Reader::open(&bytes[..]).expect("it was written"), false).digest
}

/// Returns a binary trace with these bytes as the payload of its only block.
fn sealed(payload: &[u8]) -> Option<Vec<u8>> {
    let mut length = payload.len();
    if length == 0 || length >= 1 << 20 {
        return None;
    }
    let mut bytes = b"ASXT\x02".to_vec();
    while length >= 0x80 {
        bytes.push(length as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.extend_from_slice(payload);
    let mut digest = Digest::new();
    bytes.extend_from_slice(&digest.word(0).bytes(payload).value().to_le_bytes());
    if let Err(error) = Reader::open(&bytes[..]) {
        assert!(!matches!(error.kind, ErrorKind::Checksum { .. }), "the checksum is right");
    }
    Some(bytes)
}
