//! Learn which entry of many an ipset refused.

use std::error::Error;

use sluicegate_ipset::{Client, CreateOptions, Entry, Exist, Family, Numeric, SetName, SetSpec, SetType};

pub fn main() -> Result<(), Box<dyn Error>> {
    let name = SetName::new("allowed")?;
    let set = SetSpec::new(name, SetType::HashIp, Family::Ipv4, CreateOptions::default())?;
    let entry = |text| Entry::parse(SetType::HashIp, Family::Ipv4, text, &Numeric);
    if let Err(wrong) = entry("192.0.2.300") {
        println!("before anything is sent: {wrong}");
    }
    let mut client = Client::open()?;
    client.create(&set, Exist::Fail)?;
    client.add(name, &[entry("192.0.2.1")?], Exist::Fail)?;
    if let Err(refused) = client.add(name, &[entry("192.0.2.2")?, entry("192.0.2.1")?], Exist::Fail) {
        println!("by the kernel: {refused}");
    }
    client.add(name, &[entry("192.0.2.1")?], Exist::Ignore)?;
    println!("with `-exist` that is no error");
    Ok(())
}
