//! Keep an ipset equal to a list, by the smallest change.

use std::error::Error;

use sluicegate_ipset::{Client, CreateOptions, Entry, Family, Numeric, SetName, SetSpec, SetType};

pub fn main() -> Result<(), Box<dyn Error>> {
    let name = SetName::new("blocklist")?;
    let set = SetSpec::new(name, SetType::HashNet, Family::Ipv4, CreateOptions::default())?;
    let mut client = Client::open()?;
    for list in [&["192.0.2.0/24", "198.51.100.7"][..], &["192.0.2.0/24", "203.0.113.0/24"][..]] {
        let entries: Result<Vec<_>, _> =
            list.iter().map(|text| Entry::parse(SetType::HashNet, Family::Ipv4, text, &Numeric)).collect();
        let changes = client.sync(&set, &entries?)?; // creates the set as well
        println!("{} added, {} deleted", changes.added, changes.deleted);
    }
    Ok(())
}
