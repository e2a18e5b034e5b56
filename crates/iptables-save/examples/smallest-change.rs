//! Compares two states of a chain and prints the input of `iptables-restore --noflush` between them: the
//! fewest rules, and nothing of the chains of others.
//!
//! ```text
//! cargo run -p sluicegate-iptables-save --example smallest-change
//! ```

use std::error::Error;
use std::io::{self, Write as _};

use sluicegate_iptables_save::{Save, State, diff};

/// What `iptables-save` printed.
const NOW: &str = "\
*filter
:INPUT ACCEPT [0:0]
:WEB - [0:0]
-A INPUT -j WEB
-A INPUT -i wg0 -j ACCEPT
-A WEB -s 192.0.2.0/24 -j DROP
-A WEB -p tcp -m tcp --dport 80 -j ACCEPT
COMMIT
";

/// What the chain `WEB` should contain. Its second rule is the old one in other words.
const WANTED: &str = "\
*filter
:WEB - [0:0]
-A WEB -s 192.0.2.0/24 -j DROP
-A WEB -p tcp --dport http -j ACCEPT
-A WEB -p tcp --dport https -m comment --comment \"since March\" -j ACCEPT
COMMIT
";

fn main() -> Result<(), Box<dyn Error>> {
    let now = State::of(&Save::parse(NOW)?)?;
    let wanted = State::of(&Save::parse(WANTED)?)?;
    let changes = diff(&now, &wanted, |_, chain| chain == "WEB")?;
    Ok(write!(io::stdout(), "{changes}")?)
}
