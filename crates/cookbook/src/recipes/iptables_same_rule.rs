//! Tell whether two spellings mean the same iptables rule.

use sluicegate_iptables_save::{Family, normalise};

pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pairs = [
        ("-p tcp --dport http -j DROP", "-p tcp -m tcp --dport 80 -j DROP"),
        ("-s 10.1.2.3/8 -j ACCEPT", "--source 10.0.0.0/255.0.0.0 --jump ACCEPT"),
        ("-p udp --dport 53 -j ACCEPT", "-p tcp --dport 53 -j ACCEPT"),
    ];
    for (one, other) in pairs {
        let (one, other) = (normalise(one, Family::Ipv4)?, normalise(other, Family::Ipv4)?);
        println!("{}: {one:?} {other:?}", if one == other { "same " } else { "other" });
    }
    Ok(())
}
