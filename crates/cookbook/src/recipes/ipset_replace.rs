//! Replace a whole ipset at once: packets meet the old list or the new one, never a part.

use std::error::Error;

use sluicegate_ipset::{Client, CreateOptions, Entry, Family, Numeric, SetName, SetSpec, SetType};

pub fn main() -> Result<(), Box<dyn Error>> {
    let name = SetName::new("servers")?;
    let set = SetSpec::new(name, SetType::HashIpPort, Family::Ipv4, CreateOptions::default())?;
    let entry = |text| Entry::parse(SetType::HashIpPort, Family::Ipv4, text, &Numeric);
    let mut client = Client::open()?;

    client.replace(&set, &[entry("10.0.0.1,tcp:80")?, entry("10.0.0.2,tcp:80")?])?;
    client.replace(&set, &[entry("10.0.0.2,tcp:80")?, entry("10.0.0.3,udp:53")?])?; // a second set, swapped
    for text in ["10.0.0.1,80", "10.0.0.2,80", "10.0.0.3,udp:53"] {
        println!("{text}: {}", client.test(name, &entry(text)?)?);
    }
    println!("{} set", client.names()?.len());
    Ok(())
}
