//! Single commands on chains and rules, beside the tools.

use sluicegate_xtables::{BackEnd, Client, Error, legacy, nft};
use testns::{netns, sh};

use crate::tool::Tool;

fn open(tool: Tool) -> Result<Box<dyn Client>, Error> {
    Ok(match tool.back_end {
        BackEnd::Nft => Box::new(nft::Client::open(tool.family)?),
        _ => Box::new(legacy::Client::open(tool.family)?),
    })
}

#[test]
fn each_command_does_what_the_tool_does() {
    let accept = "-p tcp -m tcp --dport 80 -j ACCEPT";
    for tool in [Tool::of(BackEnd::Nft), Tool::of(BackEnd::Legacy)].concat() {
        if !tool.here() {
            continue;
        }
        let (mut theirs, mut ours) = (String::new(), None);
        netns(|| {
            for command in ["-N WEB", &format!("-A WEB {accept}"), "-I INPUT -j WEB", "-I INPUT -j DROP"] {
                assert_eq!(sh(&format!("{} --wait=20 {command} 2>&1", tool.name(""))), "", "{command}");
            }
            theirs = tool.save("-t filter");
        });
        netns(|| {
            let client = match open(tool) {
                Ok(client) => client,
                Err(error) if error.is_unsupported() => return,
                Err(error) => panic!("{error}"),
            };
            assert_eq!((client.family(), client.back_end()), (tool.family, tool.back_end));
            assert!(client.append("filter", "WEB", accept).unwrap_err().is_not_found());
            assert!(client.ensure_chain("filter", "WEB").unwrap());
            assert!(client.ensure_rule("filter", "WEB", accept).unwrap());
            // What is there stays, the rules of a chain as well.
            assert!(!client.ensure_chain("filter", "WEB").unwrap());
            assert!(!client.ensure_rule("filter", "WEB", accept).unwrap());
            client.append("filter", "INPUT", "-j WEB").unwrap();
            client.insert("filter", "INPUT", "-j DROP").unwrap();
            client.append("filter", "OUTPUT", "-j WEB").unwrap();
            client.delete("filter", "OUTPUT", "-j WEB").unwrap();
            assert!(client.delete("filter", "OUTPUT", "-j WEB").unwrap_err().is_not_found());
            assert!(client.check("filter", "INPUT", "-j DROP").unwrap());
            assert!(!client.check("filter", "OUTPUT", "-j WEB").unwrap());
            // A name or words that would be another line change nothing.
            assert!(client.ensure_chain("filter", "X\n-F").is_err());
            assert!(client.append("filter", "INPUT", "-j DROP\n-F").is_err());
            ours = Some(tool.save("-t filter"));
        });
        if let Some(ours) = ours {
            assert_eq!(ours, theirs, "{}", tool.name(""));
        }
    }
}
