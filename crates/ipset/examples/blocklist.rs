//! Makes a set of blocked networks equal to its arguments, by the smallest change, and prints it as
//! `ipset save` does.
//!
//! ```text
//! unshare -rn target/debug/examples/blocklist 192.0.2.0/24 198.51.100.7
//! ```

use std::error::Error;
use std::io::{self, Write as _};

use sluicegate_ipset::text::Output;
use sluicegate_ipset::{Client, CreateOptions, Entry, Family, Numeric, SetName, SetSpec, SetType, Style};

fn main() -> Result<(), Box<dyn Error>> {
    // An address that is not valid is an error that names it, before anything is sent.
    let wanted = std::env::args()
        .skip(1)
        .map(|network| Entry::parse(SetType::HashNet, Family::Ipv4, &network, &Numeric))
        .collect::<Result<Vec<_>, _>>()?;

    let name = SetName::new("blocklist")?;
    let set = SetSpec::new(name, SetType::HashNet, Family::Ipv4, CreateOptions::default())?;
    let mut client = Client::open()?;
    let changes = client.sync(&set, &wanted)?; // creates the set as well

    let mut text = format!("# {} added, {} deleted\n", changes.added, changes.deleted);
    Style::new(Output::Save).write(&mut text, &client.save(Some(name))?)?;
    Ok(io::stdout().write_all(text.as_bytes())?)
}
