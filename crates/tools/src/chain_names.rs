//! Prints the names that kube-proxy gives to the chains of service ports and endpoints.
//!
//! Standard input has lines of five tab-separated columns: namespace, name, port name (may be empty),
//! protocol, endpoint (`10.0.0.1:80` or `[fd00::1]:80`). Each is printed as it came, followed by ten names,
//! tab-separated as well: `KUBE-SVC`, `KUBE-SVL`, `KUBE-FW`, `KUBE-EXT`, `KUBE-SEP`, and nftables' service,
//! local, external, firewall, endpoint and affinity.
//!
//! A line that cannot be read is reported on standard error with its number, and the rest goes on; the exit
//! status is then 1.

use std::error::Error;
use std::ffi::OsString;
use std::io::{self, BufRead, BufWriter, ErrorKind, Write};
use std::process::ExitCode;

use crate::output::{print, tell};
use sluicegate_chain_names::{Endpoint, Protocol, ServicePort};

pub(crate) fn main(arguments: &[OsString]) -> ExitCode {
    match arguments.first() {
        None => (),
        Some(word) if word == "-h" || word == "--help" => {
            return match print(USAGE) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => failed(&error),
            };
        }
        Some(word) => {
            tell(format_args!("chain-names: expected no argument, found `{}`\n{USAGE}", word.display()));
            return ExitCode::from(2);
        }
    }
    match run(io::stdin().lock(), BufWriter::new(io::stdout().lock()), io::stderr().lock()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        // Whoever reads our output has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

fn failed(error: &io::Error) -> ExitCode {
    tell(format_args!("chain-names: {error}"));
    ExitCode::FAILURE
}

/// Prints the names for every line of `input`, and returns how many lines were bad.
fn run(mut input: impl BufRead, mut output: impl Write, mut errors: impl Write) -> io::Result<usize> {
    let mut bad = 0;
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let row = line.strip_suffix(b"\n").unwrap_or(&line);
        match names(row) {
            Ok(names) => {
                output.write_all(row)?;
                output.write_all(names.as_bytes())?;
            }
            Err(error) => {
                bad += 1;
                writeln!(errors, "line {number}: {error}")?;
            }
        }
    }
    output.flush()?;
    Ok(bad)
}

/// The names for one line, each with a tab in front, and the end of the line.
fn names(row: &[u8]) -> Result<String, Box<dyn Error>> {
    let row = std::str::from_utf8(row).map_err(|error| format!("not UTF-8: {error}"))?;
    let columns: Vec<&str> = row.split('\t').collect();
    let &[namespace, name, port, protocol, endpoint] = columns.as_slice() else {
        return Err(format!(
            "expected 5 columns, separated by tabs (namespace, name, port name, protocol, endpoint), found {}",
            columns.len()
        )
        .into());
    };
    let protocol: Protocol = protocol.parse()?;
    let service = ServicePort::new(namespace, name, port, protocol)?;
    let endpoint: Endpoint = endpoint.parse()?;

    let (iptables, nftables) = (service.iptables(), service.nftables());
    let ends = service.nftables_endpoint(&endpoint);
    Ok(format!(
        "\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n",
        iptables.service(),
        iptables.local(),
        iptables.firewall(),
        iptables.external(),
        service.iptables_endpoint(&endpoint),
        nftables.service(),
        nftables.local(),
        nftables.external(),
        nftables.firewall(),
        ends.chain(),
        ends.affinity(),
    ))
}

const USAGE: &str = "\
usage: chain-names < ROWS
A row is NAMESPACE, NAME, PORT NAME, PROTOCOL and ENDPOINT, separated by tabs; it is printed with its names.
";

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(input: &[u8]) -> (usize, String, String) {
        let (mut output, mut errors) = (Vec::new(), Vec::new());
        let bad = run(input, &mut output, &mut errors).unwrap();
        (bad, String::from_utf8(output).unwrap(), String::from_utf8(errors).unwrap())
    }

    #[test]
    fn a_line_gets_its_names_in_order() {
        let (bad, output, errors) = outcome(b"demo\tdns\tdns\tUDP\t10.244.0.20:53\n");
        assert_eq!((bad, errors.as_str()), (0, ""));
        assert_eq!(
            output,
            "demo\tdns\tdns\tUDP\t10.244.0.20:53\tKUBE-SVC-IXHL676EY46F5RLS\tKUBE-SVL-IXHL676EY46F5RLS\t\
             KUBE-FW-IXHL676EY46F5RLS\tKUBE-EXT-IXHL676EY46F5RLS\tKUBE-SEP-VNXTORXD4ZU3FI6U\t\
             service-34HOXUJH-demo/dns/udp/dns\tlocal-34HOXUJH-demo/dns/udp/dns\texternal-34HOXUJH-demo/dns/udp/dns\t\
             firewall-34HOXUJH-demo/dns/udp/dns\tendpoint-PAAF6AAY-demo/dns/udp/dns__10.244.0.20/53\t\
             affinity-PAAF6AAY-demo/dns/udp/dns__10.244.0.20/53\n"
        );
    }

    #[test]
    fn an_address_is_hashed_as_it_is_written() {
        let (bad, output, _) =
            outcome(b"testing\tservice\thttp\tTCP\t[fd80:abcd:12::a1b2:c3d4:e5f6:9999]:80\n");
        assert_eq!(bad, 0);
        assert!(output.contains(
            "\tendpoint-U7E2ET36-testing/service/tcp/http__fd80.abcd.12..a1b2.c3d4.e5f6.9999/80\t"
        ));
    }

    #[test]
    fn bad_lines_are_reported_and_good_ones_printed() {
        let (bad, output, errors) = outcome(
            b"demo\tempty\t\ttcp\t10.0.0.1:80\n\nx\ty\tz\ticmp\t10.0.0.1:80\na\tb\tc\ttcp\tfd00::1:80:\n\
              \xff\na\tb\t\tsctp\t[fd00::1]:80",
        );
        assert_eq!(bad, 4);
        assert_eq!(output.lines().count(), 2);
        assert!(output.contains("service-UDTKAG7Z-demo/empty/tcp/\t"), "{output}");
        assert!(output.contains("-a/b/sctp/__fd00..1/80\n"), "{output}");
        let starts: Vec<_> = errors.lines().map(|line| line.split_once(": ").unwrap().0).collect();
        assert_eq!(starts, ["line 2", "line 3", "line 4", "line 5"]);
        assert!(errors.contains("line 2: expected 5 columns, separated by tabs"), "{errors}");
        assert!(
            errors.contains("line 3: expected the protocol tcp, udp or sctp, found \"icmp\""),
            "{errors}"
        );
    }
}
