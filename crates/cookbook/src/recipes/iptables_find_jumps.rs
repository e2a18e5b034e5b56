//! Find the rules that lead to a chain, in text that somebody saved.

use std::error::Error;

use sluicegate_iptables_save::Save;

const SAVED: &str = "\
*nat
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:DOCKER - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
-A OUTPUT ! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j DOCKER
-A DOCKER -p tcp -m tcp --dport 8080 -j DNAT --to-destination 172.17.0.2:80
COMMIT
";

pub fn main() -> Result<(), Box<dyn Error>> {
    let save = Save::parse(SAVED)?;
    let nat = save.table("nat").ok_or("no table nat")?;
    for rule in nat.rules() {
        let spec = rule.spec()?;
        match spec.target_name() {
            Some("DOCKER") => print!("leads there: {rule}"),
            Some("DNAT") => {
                let to = spec.target.as_ref().and_then(|target| target.module.value("to-destination"));
                println!("ends at {}", to.unwrap_or("?"));
            }
            _ => {}
        }
    }
    Ok(())
}
