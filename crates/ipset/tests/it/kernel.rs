//! Tests against the running kernel, in namespaces: the types that it has, large sets, and errors.

use std::net::Ipv4Addr;

use sluicegate_ipset::{
    Client, CreateOptions, Element, Entry, Error, Exist, Family, Port, SetName, SetSpec, SetType,
};
use testns::Netns;

fn name(name: &str) -> SetName {
    SetName::new(name).unwrap()
}

fn plain(set: &str, kind: SetType) -> SetSpec {
    SetSpec::new(name(set), kind, kind.default_family(), CreateOptions::default()).unwrap()
}

fn in_a_namespace(test: impl FnOnce(&mut Client) + Send) {
    if let Some(namespace) = Netns::new() {
        namespace.run(|| test(&mut Client::open().unwrap()));
    }
}

fn hosts(count: u32) -> Vec<Entry> {
    (0..count)
        .map(|n| {
            let address = Ipv4Addr::from(0x0a00_0001 + n);
            Entry::new(SetType::HashIp, Family::Ipv4, Element::Ip(address.into())).unwrap()
        })
        .collect()
}

#[test]
fn every_type_of_this_kernel_behaves_as_with_ipset() {
    if !testns::have(&["ipset"]) {
        return;
    }
    let mut lacking = Vec::new();
    for kind in SetType::ALL {
        for family in kind.families() {
            let Some(namespace) = Netns::new() else { return };
            let has = namespace.run(|| match Client::open().unwrap().revision(kind, *family) {
                Ok(_) => true,
                Err(error) => {
                    assert!(error.is_unsupported(), "{error}");
                    false
                }
            });
            if has {
                namespace.run(|| crate::every_type::same_as_ipset(kind, *family, 200));
            } else {
                lacking.push(kind.name());
            }
        }
    }
    // Not a skip: tests/guest.rs has them all.
    eprintln!("not in this kernel: {}", lacking.join(" "));
    assert!(lacking.len() < SetType::ALL.len());
}

#[test]
fn a_hundred_thousand_entries_come_back() {
    in_a_namespace(|client| {
        let entries = hosts(100_000);
        client.create(&plain("a", SetType::HashIp).sized_for(entries.len()), Exist::Fail).unwrap();
        client.add(name("a"), &entries, Exist::Fail).unwrap();
        let listing = client.list(Some(name("a"))).unwrap().remove(0);
        assert_eq!(listing.info.entries, Some(100_000));
        let found: std::collections::HashSet<_> =
            listing.entries.iter().map(|entry| *entry.element()).collect();
        assert!(entries.iter().all(|entry| found.contains(entry.element())));
        assert_eq!(found.len(), 100_000);
        client.delete(name("a"), &entries, Exist::Fail).unwrap();
        assert_eq!(client.infos(Some(name("a"))).unwrap()[0].entries, Some(0));
    });
}

#[test]
fn an_error_names_the_entry_among_many() {
    in_a_namespace(|client| {
        let mut entries = hosts(5000);
        entries[4000] = entries[17].clone();
        client.create(&plain("a", SetType::HashIp), Exist::Fail).unwrap();
        let error = client.add(name("a"), &entries, Exist::Fail).unwrap_err();
        assert_eq!(error.to_string(), "add a 10.0.0.18: the entry is in the set already");
        let Error::Refused(refusal) = error else { panic!("a refusal") };
        assert_eq!(refusal.index, Some(4000));
        assert_eq!(refusal.entry.as_ref(), entries.get(17));

        client.flush(name("a")).unwrap();
        let error = client.add_in_order(name("a"), &entries, Exist::Fail).unwrap_err();
        assert!(error.is_already_exists());
        // The entries before it were added, those after it were not.
        assert_eq!(client.infos(Some(name("a"))).unwrap()[0].entries, Some(4000));
        client.add(name("a"), &entries, Exist::Ignore).unwrap();
        assert_eq!(client.infos(Some(name("a"))).unwrap()[0].entries, Some(4999));
    });
}

#[test]
fn a_full_set_and_a_missing_one_are_different_errors() {
    in_a_namespace(|client| {
        let mut options = CreateOptions::default();
        options.maxelem = Some(10);
        let spec = SetSpec::new(name("a"), SetType::HashIp, Family::Ipv4, options).unwrap();
        client.create(&spec, Exist::Fail).unwrap();
        let error = client.add(name("a"), &hosts(11), Exist::Fail).unwrap_err();
        assert!(error.is_full(), "{error}");
        assert_eq!(error.to_string(), "add a 10.0.0.11: the set is full (maxelem)");
        let error = client.add(name("b"), &hosts(1), Exist::Fail).unwrap_err();
        assert!(error.is_not_found() && !error.is_full());
        assert_eq!(error.to_string(), "add b: no set has this name");
    });
}

#[test]
fn a_set_is_replaced_completely_or_not_at_all() {
    in_a_namespace(|client| {
        let mut options = CreateOptions::default();
        options.maxelem = Some(10);
        let spec = SetSpec::new(name("a"), SetType::HashIp, Family::Ipv4, options).unwrap();
        client.replace(&spec, &hosts(3)).unwrap();
        assert_eq!(client.infos(Some(name("a"))).unwrap()[0].entries, Some(3));
        client.replace(&spec, &hosts(5)).unwrap();
        assert_eq!(client.infos(Some(name("a"))).unwrap()[0].entries, Some(5));

        // The kernel refuses an element of zeros after it has added others.
        let mut bad = hosts(3000);
        bad[2000] =
            Entry::new(SetType::HashIp, Family::Ipv4, Element::Ip(Ipv4Addr::UNSPECIFIED.into())).unwrap();
        let error = client.replace(&spec, &bad).unwrap_err();
        let Error::Refused(refusal) = &error else { panic!("{error}") };
        assert_eq!(refusal.index, Some(2000));
        assert_eq!(client.infos(None).unwrap().len(), 1);
        assert_eq!(client.infos(Some(name("a"))).unwrap()[0].entries, Some(5));
        let error = client.replace(&spec.named(name("new")), &bad).unwrap_err();
        assert!(matches!(error, Error::Refused(_)));
        assert_eq!(client.names().unwrap(), [name("a")]);

        let other = plain("a", SetType::HashNet);
        let error = client.replace(&other, &[]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "set a exists as hash:ip with family inet, not as hash:net with family inet"
        );
    });
}

#[test]
fn a_set_that_is_being_listed_is_replaced_when_the_listing_is_done() {
    use sluicegate_netlink::{Batch, NetlinkFamily, Options, Socket, Transport, Wait, message::Flags};

    let Some(namespace) = Netns::new() else { return };
    namespace.run(|| {
        let mut client = Client::open().unwrap();
        let spec = plain("a", SetType::HashIp);
        // Many times the size of the receive buffer, but read quickly: replacing waits for a second at most.
        client.replace(&spec, &hosts(5_000)).unwrap();

        // A listing that fills its receive buffer and continues when it is read.
        let mut options = Options::default();
        options.receive_buffer = 16 << 10;
        let mut listing = Socket::open(NetlinkFamily::NETFILTER, &options).unwrap();
        let mut request = Batch::new();
        let mut message = request.netfilter(6, 7, Flags::DUMP, 2, 0);
        message.put_u8(1, 7);
        message.put_str(2, "a");
        drop(message);
        listing.send(request.bytes().unwrap()).unwrap();
        let mut buffer = Vec::new();
        assert!(listing.receive(&mut buffer, Wait::Answer).unwrap());

        assert!(client.destroy(name("a"), Exist::Fail).unwrap_err().is_busy());
        client.create(&plain("b", SetType::HashIp), Exist::Fail).unwrap();
        assert!(client.swap(name("a"), name("b")).unwrap_err().is_busy());

        let mut other = Client::open().unwrap();
        let replaced = std::thread::scope(|scope| {
            let replacing = scope.spawn(|| client.replace(&spec, &hosts(3)));
            // The temporary set is created before the two are swapped.
            while other.names().unwrap().len() < 3 && !replacing.is_finished() {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
            while listing.receive(&mut buffer, Wait::No).unwrap() {}
            replacing.join().unwrap()
        });
        replaced.unwrap();
        assert_eq!(client.infos(Some(name("a"))).unwrap()[0].entries, Some(3));
        assert_eq!(client.names().unwrap(), [name("a"), name("b")]);
    });
}

#[test]
fn sync_changes_only_what_differs() {
    in_a_namespace(|client| {
        let spec = plain("a", SetType::HashIp);
        let entries = hosts(2000);
        let first = client.sync(&spec, &entries[..1000]).unwrap();
        assert_eq!((first.created, first.added, first.deleted), (true, 1000, 0));
        let second = client.sync(&spec, &entries[10..1020]).unwrap();
        assert_eq!((second.created, second.added, second.deleted), (false, 20, 10));
        assert!(client.sync(&spec, &entries[10..1020]).unwrap().is_empty());
    });
}

#[test]
fn sync_deletes_first_if_the_set_is_nearly_full() {
    in_a_namespace(|client| {
        let mut options = CreateOptions::default();
        options.maxelem = Some(100);
        let spec = SetSpec::new(name("a"), SetType::HashIp, Family::Ipv4, options).unwrap();
        let entries = hosts(200);
        client.sync(&spec, &entries[..100]).unwrap();
        let changes = client.sync(&spec, &entries[50..150]).unwrap();
        assert_eq!((changes.added, changes.deleted), (50, 50));
    });
}

#[test]
fn sync_applies_the_mask_of_a_set_to_entries() {
    in_a_namespace(|client| {
        let mut options = CreateOptions::default();
        options.netmask = Some(24);
        for kind in [SetType::HashIp, SetType::HashIpPort] {
            let spec = SetSpec::new(name("a"), kind, Family::Ipv4, options.clone()).unwrap();
            let address = Ipv4Addr::new(10, 1, 2, 3);
            let element = match kind {
                SetType::HashIp => Element::Ip(address.into()),
                _ => Element::IpPort(address.into(), Port::tcp(80)),
            };
            let wanted = [Entry::new(kind, Family::Ipv4, element).unwrap()];
            assert_eq!(client.sync(&spec, &wanted).unwrap().added, 1);
            assert!(client.sync(&spec, &wanted).unwrap().is_empty(), "{kind}");
            client.destroy(name("a"), Exist::Fail).unwrap();
        }
    });
}

#[test]
fn sets_are_found_by_name_and_by_index() {
    in_a_namespace(|client| {
        client.create(&plain("a", SetType::HashIp), Exist::Fail).unwrap();
        client.create(&plain("b", SetType::HashNet), Exist::Fail).unwrap();
        let index = client.index_of(name("b")).unwrap();
        assert_eq!(client.name_of(index).unwrap(), name("b"));
        assert_eq!(client.infos(Some(name("b"))).unwrap()[0].index, Some(index));
        assert!(client.index_of(name("c")).unwrap_err().is_not_found());
        assert!(client.name_of(999).unwrap_err().is_not_found());
        let (min, max) = client.protocol().unwrap();
        assert!(min <= 7 && max >= 6);
    });
}

#[test]
fn names_move_with_rename_and_swap() {
    in_a_namespace(|client| {
        client.create(&plain("a", SetType::HashIp), Exist::Fail).unwrap();
        client.create(&plain("b", SetType::HashIp), Exist::Fail).unwrap();
        client.create(&plain("n", SetType::HashNet), Exist::Fail).unwrap();
        client.add(name("a"), &hosts(2), Exist::Fail).unwrap();
        client.swap(name("a"), name("b")).unwrap();
        assert_eq!(client.infos(Some(name("b"))).unwrap()[0].entries, Some(2));
        client.rename(name("b"), name("c")).unwrap();
        assert!(client.header(name("b")).unwrap_err().is_not_found());
        for (error, text) in [
            (client.rename(name("c"), name("a")), "rename c: a set of the new name exists already"),
            (client.swap(name("c"), name("x")), "swap c: no set has the second name"),
            (client.swap(name("c"), name("n")), "swap c: the two sets differ in type or family"),
            (client.rename(name("x"), name("y")), "rename x: no set has this name"),
        ] {
            assert_eq!(error.unwrap_err().to_string(), text);
        }
        client.flush_all().unwrap();
        assert!(client.infos(None).unwrap().iter().all(|info| info.entries == Some(0)));
        client.destroy_all().unwrap();
        assert!(client.names().unwrap().is_empty());
    });
}
