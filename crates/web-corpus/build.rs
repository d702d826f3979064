//! Tells the program what it is built from and with: its parity records say so.

fn main() -> Result<(), String> {
    asx_origin::emit()
}
