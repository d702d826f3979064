#[asx::main(threads = 4)]
async fn unknown() {}

#[asx::main(workers)]
async fn no_number() {}

#[asx::main(workers = "four")]
async fn no_integer() {}

#[asx::main(workers = 0)]
async fn nobody() {}

#[asx::main(workers = 2, current_thread)]
async fn twice() {}

#[asx::main(name = 5)]
async fn no_text() {}

fn main() {}
