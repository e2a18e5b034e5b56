//! Any header `Accept`, and any bind address: the text has the media type that goes with it, and an address
//! prints as one that reads the same.
use std::time::SystemTime;

use sluicegate_proxier::Mode;
use sluicegate_proxier::serve::{BindAddress, Metrics};
use sluicegate_services::Family;

pub(crate) fn run(text: &str) {
    let metrics = Metrics::new(Mode::Nftables, &[Family::Ipv4], SystemTime::UNIX_EPOCH);
    let (media_type, body) = metrics.text(Some(text));
    let is_open = media_type.starts_with("application/openmetrics-text;");
    assert_eq!(body.ends_with("# EOF\n"), is_open);
    assert!(!is_open || text.to_lowercase().contains("application/openmetrics-text"));

    if let Some(socket) = text.parse::<BindAddress>().ok().and_then(|address| address.socket(1)) {
        let again: BindAddress = socket.to_string().parse().expect("a socket address");
        assert_eq!(again.socket(2), Some(socket));
    }
}
