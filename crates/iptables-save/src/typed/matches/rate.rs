//! Matches that count, measure or remember.

use crate::typed::{Flag, List, Not, Optional, Probability, typed};

typed! {
    /// A rate for each group of packets.
    Hashlimit = "hashlimit" {
        /// Matches up to this rate, as in `10/sec` or `512kb/s`.
        upto: Option<Not<String>> = "hashlimit-upto",
        /// Matches above this rate.
        above: Option<Not<String>> = "hashlimit-above",
        /// Packets, or bytes with a unit.
        burst: Option<String> = "hashlimit-burst",
        /// The keys of a group: `srcip`, `srcport`, `dstip`, `dstport`.
        mode: Option<List> = "hashlimit-mode",
        /// Name of the table, a file in `/proc/net/ipt_hashlimit`.
        name: String = "hashlimit-name",
        /// Buckets.
        htable_size: Option<u32> = "hashlimit-htable-size",
        /// Most entries.
        htable_max: Option<u32> = "hashlimit-htable-max",
        /// Milliseconds between clean-ups.
        htable_gcinterval: Option<u32> = "hashlimit-htable-gcinterval",
        /// Milliseconds until an idle entry goes.
        htable_expire: Option<u32> = "hashlimit-htable-expire",
        /// Prefix length of sources.
        srcmask: Option<u8> = "hashlimit-srcmask",
        /// Prefix length of destinations.
        dstmask: Option<u8> = "hashlimit-dstmask",
        /// Measures the rate instead of limiting it.
        rate_match: bool = "hashlimit-rate-match",
        /// Seconds of the measurement.
        rate_interval: Option<u32> = "hashlimit-rate-interval",
    }
    /// A rate of all packets together.
    Limit = "limit" {
        /// As in `3/hour`.
        limit: Option<String> = "limit",
        /// Packets.
        burst: Option<u32> = "limit-burst",
    }
    /// Counts into an object of nfacct; matches every packet.
    Nfacct = "nfacct" {
        /// The object.
        name: String = "nfacct-name",
    }
    /// Bytes until a quota is used up.
    Quota = "quota" {
        /// The quota in bytes.
        quota: Not<u64> = "quota",
    }
    /// Rates of estimators, compared with each other or with a number.
    Rateest = "rateest" {
        /// The first estimator.
        rateest1: Option<String> = "rateest1",
        /// Differences are compared.
        delta: bool = "rateest-delta",
        /// By bits, with what is subtracted from.
        bps1: Option<Optional> = "rateest-bps1",
        /// By packets, with what is subtracted from.
        pps1: Option<Optional> = "rateest-pps1",
        /// The first is lower.
        lt: Flag = "rateest-lt",
        /// The first is higher.
        gt: Flag = "rateest-gt",
        /// They are equal.
        eq: Flag = "rateest-eq",
        /// The second estimator.
        rateest2: Option<String> = "rateest2",
        /// Bits to compare with.
        bps2: Option<Optional> = "rateest-bps2",
        /// Packets to compare with.
        pps2: Option<Optional> = "rateest-pps2",
    }
    /// A list of addresses that were seen.
    Recent = "recent" {
        /// Adds the address.
        set: Flag = "set",
        /// Is the address there?
        rcheck: Flag = "rcheck",
        /// The same, and notes the time.
        update: Flag = "update",
        /// The same, and removes it.
        remove: Flag = "remove",
        /// Seen within so many seconds.
        seconds: Option<u32> = "seconds",
        /// Forgets older ones.
        reap: bool = "reap",
        /// Seen so many times.
        hitcount: Option<u32> = "hitcount",
        /// With the same TTL.
        rttl: bool = "rttl",
        /// Name of the list; `DEFAULT` without one.
        name: Option<String> = "name",
        /// Mask of addresses.
        mask: Option<String> = "mask",
        /// The source counts.
        rsource: bool = "rsource",
        /// The destination counts.
        rdest: bool = "rdest",
    }
    /// At random, or every n-th packet.
    Statistic = "statistic" {
        /// `random` or `nth`.
        mode: String = "mode",
        /// Of `random`.
        probability: Option<Not<Probability>> = "probability",
        /// Of `nth`.
        every: Option<Not<u32>> = "every",
        /// Of `nth`: which of them, from 0.
        packet: Option<u32> = "packet",
    }
    /// The time at which the packet arrives.
    Time = "time" {
        /// From this time of day, `hh:mm:ss`.
        timestart: Option<String> = "timestart",
        /// To this time of day.
        timestop: Option<String> = "timestop",
        /// Days of the month.
        monthdays: Option<Not<List>> = "monthdays",
        /// Days of the week, as in `Mon`.
        weekdays: Option<Not<List>> = "weekdays",
        /// From this date, `YYYY-MM-DDThh:mm:ss`.
        datestart: Option<String> = "datestart",
        /// To this date.
        datestop: Option<String> = "datestop",
        /// In the kernel's time zone.
        kerneltz: bool = "kerneltz",
        /// In UTC, which is the default.
        utc: bool = "utc",
        /// From a start in the evening to a stop on the next day.
        contiguous: bool = "contiguous",
    }
}
