//! Events.

use std::net::Ipv4Addr;

use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::monitor::{Change, Commit, Event, Follower, GROUP, Monitor};
use sluicegate_nftables::*;

use crate::kernel::cases::name;
use crate::kernel::nft_monitor::NftMonitor;

#[test]
fn a_commit_is_seen_object_by_object_and_ends_with_its_generation() {
    testns::netns(|| {
        let options = Options::default();
        let mut socket = Socket::open(NetlinkFamily::NETFILTER, &options).expect("a socket");
        socket.join(GROUP).expect("the group can be joined");
        let mut monitor = Monitor::with_transport(socket);

        let table = TableId::new(Family::IP, name("t"));
        let set = table.set(name("s"));
        let mut tx = Transaction::new();
        tx.add(Table::new(table.clone())).add(Set::new(set.clone(), DataType::IPV4_ADDR));
        tx.add_element(&set, Ipv4Addr::LOCALHOST);
        let mut sender = Socket::open(NetlinkFamily::NETFILTER, &options).expect("a socket");
        let applied = tx.apply(&mut sender).expect("it can be applied");

        let mut seen = Vec::new();
        while !seen.iter().any(|event| matches!(event, Event::Generation(_))) {
            let events = monitor.events().expect("events");
            assert!(!events.is_empty(), "nothing more came after {seen:?}");
            seen.extend(events);
        }
        assert!(matches!(&seen[0], Event::Table(Change::New, t) if t.name == name("t")));
        assert!(matches!(&seen[1], Event::Set(Change::New, s) if s.name == name("s")));
        assert!(matches!(&seen[2], Event::Elements(Change::New, s, e) if s.set == name("s") && 
                e[0].key == [127, 0, 0, 1]));
        assert!(
            matches!(&seen[3], Event::Generation(g) if g.id == applied.generation && g.process.is_some())
        );
    });
}

/// The real tool's words for what happens, beside those of a copy that follows.
#[test]
fn commits_are_said_as_nft_monitor_says_them() {
    if !testns::have(&["nft"]) {
        return;
    }
    testns::netns(|| {
        let mut watch = Watch::start();
        let cases = crate::kernel::cases::all();
        let compared = cases.iter().filter(|case| OTHERWISE.iter().all(|(name, _)| *name != case.name));
        let failed: Vec<String> = compared.filter_map(|case| watch.compare(case).err()).collect();
        assert!(failed.is_empty(), "{}", failed.join("\n"));
    });
}

/// A copy that follows, beside the real tool.
struct Watch {
    socket: Socket,
    monitor: Monitor<Socket>,
    follower: Follower,
    nft: NftMonitor,
}

impl Watch {
    fn start() -> Self {
        let open = || Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket");
        let (mut socket, mut listener) = (open(), open());
        listener.join(GROUP).expect("the group can be joined");
        let mut first = Transaction::new();
        first.add(Table::new(TableId::new(Family::IP, name("first"))));
        // Once it tells of the first, nft has read what there was. It ends where that changes while it reads.
        let nft = (0..20).find_map(|_| {
            let mut nft = NftMonitor::start(&[]);
            first.apply(&mut socket).expect("it can be applied");
            let is_ready = nft.commits(1).is_some();
            clear().apply(&mut socket).expect("it can be applied");
            (is_ready && nft.commits(1).is_some()).then_some(nft)
        });
        let follower = Follower::read(&mut socket, Family::UNSPEC).expect("a ruleset");
        Self {
            socket,
            monitor: Monitor::with_transport(listener),
            follower,
            nft: nft.expect("nft monitor starts"),
        }
    }

    /// What a case does, and that all of it goes.
    fn compare(&mut self, case: &crate::kernel::cases::Case) -> Result<(), String> {
        let before = self.follower.generation();
        // What this kernel does not take is not told.
        let _ = case.transaction.apply(&mut self.socket);
        let options = options();
        clear().apply(&mut self.socket).expect("it can be applied");
        let after = read::generation(&mut self.socket).expect("a generation").id;
        let commits = usize::try_from(after.wrapping_sub(before)).expect("a few");
        let mut ours = Vec::new();
        for _ in 0..commits {
            let commit = self.next_commit();
            ours.extend(commit.lines(&options));
        }
        let Some(mut theirs) = self.nft.commits(commits) else {
            *self = Self::start();
            return Err(format!("{}: nft ended", case.name));
        };
        crate::kernel::parity::but_for_protocols(&mut theirs, &mut ours);
        if ours == theirs {
            return Ok(());
        }
        Err(format!("{}:\n{}", case.name, crate::kernel::parity::difference(&theirs, &ours)))
    }

    fn next_commit(&mut self) -> Commit {
        loop {
            let events = self.monitor.events().expect("events");
            assert!(!events.is_empty(), "a commit is notified");
            for event in events {
                if let Some(commit) = self.follower.apply(event).expect("the copy follows") {
                    return commit;
                }
            }
        }
    }
}

fn clear() -> Transaction {
    let mut transaction = Transaction::new();
    transaction.flush(Flush::Ruleset(Family::UNSPEC));
    transaction
}

/// What nft looks up on the machine.
fn options() -> ListOptions {
    let mut socket = Socket::open(NetlinkFamily::ROUTE, &Options::default()).expect("a socket");
    let mut options = read::list_options(&mut socket).expect("names");
    (options.state, options.time_zone) = (true, Some(TimeZone::UTC));
    options
}

/// Cases of which nft 1.0.6 says something else, and why.
const OTHERWISE: &[(&str, &str)] = &[
    ("objects", "it prints memory that is not its own behind a range in a concatenation"),
    ("conntrack objects", "it crashes"),
    ("chains of rules", "it crashes"),
    ("names of the machine, ip", "it prints the ends of intervals without a name as they are in the kernel"),
    ("flowtable", "it does not tell of those before 1.1.4"),
];
