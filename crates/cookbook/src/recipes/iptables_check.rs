//! Check a line of iptables without running it: the column, and what is wrong there.

use sluicegate_iptables_save::check_line;

pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    for line in [
        "-A INPUT -p tcp --dport 22 -j ACCEPT",
        "-A INPUT -p tcp --dprot 22 -j ACCEPT",
        "-A INPUT --dport 22 -j ACCEPT",
        "-A INPUT -p tcp --dport sshd -j ACCEPT",
        "-A INPUT -s 10.0.0.0/33 -j ACCEPT",
    ] {
        match check_line(line) {
            Ok(_) => println!("good:  {line}"),
            Err(error) => println!("wrong: {line}\n       {error}"),
        }
    }
    Ok(())
}
