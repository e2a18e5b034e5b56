//! Test netlink code against a scripted kernel: these bytes in, those out.

use std::error::Error;

use sluicegate_netlink::message::Flags;
use sluicegate_netlink::scripted::{self, Script};
use sluicegate_netlink::{Batch, exchange};

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut batch = Batch::new();
    let mut message = batch.message(0x0a03, Flags::REQUEST | Flags::ACK, 7);
    message.put_str(1, "inner");
    let mut nest = message.nest(2);
    nest.put_be32(1, 80);
    drop(nest); // patches the length, which cannot wrap
    drop(message);

    let mut kernel = Script::new();
    kernel.expect(batch.bytes()?).reply(scripted::ack(1));
    let report = exchange(&mut kernel, &[&batch], |_| Ok(()))?;
    println!("{} bytes sent, {} errors", batch.len(), report.errors.len());
    kernel.finish(); // panics if a step was not reached
    Ok(())
}
