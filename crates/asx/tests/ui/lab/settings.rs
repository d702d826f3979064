#[asx::test(threads = 4)]
async fn unknown() {}

#[asx::test(seeds)]
async fn no_number() {}

#[asx::test(seeds = 0)]
async fn no_runs() {}

#[asx::test(seeds = 5, runs = 5)]
async fn twice() {}

#[asx::test(strategy = "clever")]
async fn no_strategy() {}

#[asx::test(strategy = "pct(0)")]
async fn no_depth() {}

#[asx::test(time = "2h")]
async fn no_time() {}

#[asx::test(cancel = "now")]
async fn no_cancel() {}

#[asx::test(seed = -1)]
async fn no_seed() {}

#[asx::test(transparent = true)]
async fn no_value() {}

#[asx::test(workers = 4, seeds = 10)]
async fn not_in_the_lab() {}

fn main() {}
