//! Servers over real sockets, and hostile clients.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};

use super::*;

fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

fn echo() -> Handler {
    Arc::new(|request| super::super::answer(200, super::super::PLAIN, request.uri().path().to_owned()).into())
}

/// At once, but for another test of this process that is starting a program: that holds a copy of every
/// descriptor until it runs.
fn soon(holds: impl Fn() -> bool) {
    let end = std::time::Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(std::time::Instant::now() < end, "it never comes true");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn loopback(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

#[test]
fn a_port_is_free_when_its_server_is_dropped() {
    testns::netns(|| {
        let server = Server::start().unwrap();
        let first = server.listen("first", loopback(0), echo()).unwrap();
        let address = first.address().unwrap();
        assert!(ask(address, "GET /a HTTP/1.0\r\n\r\n").ends_with("\r\n\r\n/a"));
        let kept = TcpStream::connect(address).unwrap();
        let second = server.listen("second", address, echo()).unwrap_err();
        assert!(second.is_in_use());
        assert_eq!(
            second.to_string(),
            format!("second cannot listen on {address}: Address already in use (os error 98)")
        );
        for _ in 0..100 {
            let again = server.listen("first", loopback(0), echo()).unwrap();
            let address = again.address().unwrap();
            drop(again);
            soon(|| server.listen("next", address, echo()).is_ok());
        }
        drop(first);
        soon(|| TcpStream::connect(address).is_err());
        let mut rest = Vec::new();
        // Closed in order or reset: closed it must be.
        let _ = (&kept).read_to_end(&mut rest);
        assert!(rest.is_empty());
    });
}

#[test]
fn a_taken_port_is_tried_again_until_it_is_free() {
    testns::netns(|| {
        let server = Server::start().unwrap();
        let taken = std::net::TcpListener::bind(loopback(0)).unwrap();
        let address = taken.local_addr().unwrap();
        let (sender, received) = mpsc::channel();
        let report = move |outcome: Result<SocketAddr, Error>| {
            sender.send(outcome.map_err(|error| error.is_in_use())).unwrap();
        };
        let every = Duration::from_millis(1);
        let listening = server.listen_with_retries("server", address, every, echo(), report);
        assert_eq!(received.recv(), Ok(Err(true)));
        assert_eq!(listening.address(), None);
        std::thread::sleep(Duration::from_millis(20));
        assert!(received.try_recv().is_err(), "the same error is reported once");
        drop(taken);
        assert_eq!(received.recv(), Ok(Ok(address)));
        assert!(ask(address, "GET /a HTTP/1.0\r\n\r\n").ends_with("/a"));
        assert_eq!(listening.address(), Some(address));

        let taken = std::net::TcpListener::bind(loopback(0)).unwrap();
        let waiting =
            server.listen_with_retries("server", taken.local_addr().unwrap(), every, echo(), |_| ());
        // It ends with this, although it never listened.
        drop(waiting);
    });
}

#[test]
fn a_server_outlives_clients_that_speak_no_http_or_break_off() {
    testns::netns(|| {
        let server = Server::start().unwrap();
        let listening = server.listen("server", loopback(0), echo()).unwrap();
        let address = listening.address().unwrap();
        for _ in 0..512 {
            drop(TcpStream::connect(address).unwrap());
        }
        assert!(ask(address, "\0\0\0\r\n\r\n").starts_with("HTTP/1.1 400"));
        assert!(ask(address, "HEAD /b HTTP/1.0\r\n\r\n").ends_with("\r\n\r\n"));
        assert!(ask(address, "GET /c HTTP/1.0\r\n\r\n").ends_with("/c"));
    });
}

#[test]
fn addresses_are_read_as_kube_proxy_reads_them() {
    let socket = |text: &str| text.parse::<BindAddress>().map(|at| at.socket(10249).map(|at| at.to_string()));
    assert_eq!(socket("127.0.0.1:1"), Ok(Some("127.0.0.1:1".to_owned())));
    assert_eq!(socket("::"), Ok(Some("[::]:10249".to_owned())));
    assert_eq!(socket("[::]"), Ok(Some("[::]:10249".to_owned())));
    assert_eq!(socket(" "), Ok(None));
    for bad in ["localhost:80", "127.0.0.1:", "127.0.0.1:65536", "10256", "[1.2.3.4"] {
        assert!(socket(bad).is_err(), "{bad}");
    }
}
/// Answers a number with that many kilobytes. The buffers of a socket hold 10,000 at most.
fn big() -> Handler {
    Arc::new(move |request| {
        let kilobytes = request.uri().path().trim_start_matches('/').parse::<usize>();
        let body = kilobytes.map_or_else(|_| "ok".to_owned(), |count| "x".repeat(count << 10));
        super::super::answer(200, super::super::PLAIN, body).into()
    })
}

/// Idle connections, half requests, and clients that never read.
fn hostile(address: SocketAddr, number: usize) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    // One that was closed already is hostile no longer.
    let _ = match number % 10 {
        0 => stream.write_all(b"GET /64 HTTP/1.1\r\nHost: x\r\n\r\n"),
        1..=5 => stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: "),
        _ => Ok(()),
    };
    stream
}

#[test]
fn five_thousand_hostile_connections_do_not_silence_a_server() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).unwrap();
    assert!(hard > 6000, "the test needs 6,000 descriptors, and may have {hard}");
    testns::netns(|| {
        let server = Server::start().unwrap();
        let listening = server.listen("server", loopback(0), big()).unwrap();
        let address = listening.address().unwrap();
        let mut kept: Vec<_> = (0..5000).map(|number| hostile(address, number)).collect();
        for round in 0..50 {
            // They come back all the time.
            kept.drain(..20);
            kept.extend((0..20).map(|number| hostile(address, round + number)));
            let began = std::time::Instant::now();
            assert!(ask(address, "GET /healthz HTTP/1.0\r\nHost: x\r\n\r\n").ends_with("\r\n\r\nok"));
            assert!(began.elapsed() < EXCHANGE, "it waited until one of them had to go");
        }
    });
}

#[test]
fn whoever_does_not_read_is_closed() {
    testns::netns(|| {
        let server = Server::start().unwrap();
        let listening = server.listen("server", loopback(0), big()).unwrap();
        let began = std::time::Instant::now();
        let idle = TcpStream::connect(listening.address().unwrap()).unwrap();
        let mut deaf = TcpStream::connect(listening.address().unwrap()).unwrap();
        deaf.write_all(b"GET /32768 HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let _ = (&idle).read_to_end(&mut Vec::new());
        assert!(began.elapsed() < EXCHANGE, "an idle connection lasts {:?}", began.elapsed());
        std::thread::sleep((EXCHANGE + Duration::from_secs(1)).saturating_sub(began.elapsed()));
        let mut rest = Vec::new();
        let _ = deaf.read_to_end(&mut rest);
        assert!(rest.len() < 32 << 20, "what the buffers held, {} bytes", rest.len());
    });
}

#[test]
fn a_connection_keeps_for_more_requests_with_headers_of_a_few_kilobytes() {
    testns::netns(|| {
        let server = Server::start().unwrap();
        let listening = server.listen("server", loopback(0), echo()).unwrap();
        let address = listening.address().unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        for path in ["/a", "/b", "/c"] {
            stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).unwrap();
            let mut answer = String::new();
            while !answer.ends_with(path) {
                let mut part = [0; 512];
                let count = stream.read(&mut part).unwrap();
                assert_ne!(count, 0, "closed after {answer:?}");
                answer.push_str(std::str::from_utf8(&part[..count]).unwrap());
            }
            assert!(!answer.to_lowercase().contains("connection: close"), "{answer}");
        }
        // As clients of HTTP/1.0 expect, and where the client wants no more.
        assert!(ask(address, "GET /a HTTP/1.0\r\n\r\n").ends_with("/a"));
        let last = "GET /b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        let twice = ask(address, &format!("GET /a HTTP/1.1\r\nHost: x\r\n\r\n{last}"));
        assert_eq!(twice.matches("HTTP/1.1 200").count(), 2, "{twice}");
        let large = format!("GET /a HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n", "x".repeat(8 << 20));
        let mut stream = TcpStream::connect(address).unwrap();
        // The server closes before it has all of it.
        assert!(stream.write_all(large.as_bytes()).is_err() || stream.read(&mut [0; 16]).is_ok());
    });
}
