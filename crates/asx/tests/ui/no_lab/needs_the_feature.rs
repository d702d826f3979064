#[asx::test]
async fn test() {}

fn main() {}
