//! Names of services and aliases of protocols, as Debian 12 ships them in /etc/services and /etc/protocols
//! (netbase 6.4), based on the IANA registries. nft reads them from the machine where it runs; this parser
//! opens no file.

/// The port of a service. Where TCP and UDP have different ones, that of TCP, as `getaddrinfo` has it.
pub(crate) fn port_of(name: &str) -> Option<u16> {
    let at = SERVICES.binary_search_by_key(&name, |(name, _)| name).ok()?;
    SERVICES.get(at).map(|(_, port)| *port)
}

/// The names of services, sorted.
pub(crate) fn services() -> impl Iterator<Item = &'static str> {
    SERVICES.iter().map(|(name, _)| *name)
}

/// The number of a protocol by a name that is not the first in /etc/protocols.
pub(crate) fn protocol_alias(name: &str) -> Option<u8> {
    ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, number)| *number)
}

#[rustfmt::skip]
const SERVICES: &[(&str, u16)] = &[
    ("Clearcase", 371), ("acr-nema", 104), ("afpovertcp", 548), ("afs3-bos", 7007), ("afs3-callback", 7001),
    ("afs3-fileserver", 7000), ("afs3-kaserver", 7004), ("afs3-prserver", 7002), ("afs3-rmtsys", 7009),
    ("afs3-update", 7008), ("afs3-vlserver", 7003), ("afs3-volser", 7005), ("amanda", 10080),
    ("amandaidx", 10082), ("amidxtape", 10083), ("amqp", 5672), ("amqps", 5671), ("asf-rmcp", 623),
    ("asp", 27374), ("auth", 113), ("authentication", 113), ("babel", 6696), ("bacula-dir", 9101),
    ("bacula-fd", 9102), ("bacula-sd", 9103), ("bbs", 7000), ("bgp", 179), ("bgpd", 2605), ("biff", 512),
    ("binkp", 24554), ("bootpc", 68), ("bootps", 67), ("canna", 5680), ("cfengine", 5308), ("chargen", 19),
    ("cisco-sccp", 2000), ("clc-build-daemon", 8990), ("clearcase", 371), ("cmd", 514), ("cmip-agent", 164),
    ("cmip-man", 163), ("codaauth2", 370), ("codasrv", 2432), ("codasrv-se", 2433), ("comsat", 512),
    ("csync2", 30865), ("cvspserver", 2401), ("daap", 3689), ("datametrics", 1645), ("daytime", 13),
    ("db-lsp", 17500), ("dcap", 22125), ("dhcpv6-client", 546), ("dhcpv6-server", 547), ("dicom", 11112),
    ("dict", 2628), ("dircproxy", 57000), ("discard", 9), ("distcc", 3632), ("domain", 53),
    ("domain-s", 853), ("echo", 7), ("epmap", 135), ("epmd", 4369), ("exec", 512), ("f5-globalsite", 2792),
    ("f5-iquery", 4353), ("fax", 4557), ("fido", 60179), ("finger", 79), ("font-service", 7100),
    ("freeciv", 5556), ("fsp", 21), ("fspd", 21), ("ftp", 21), ("ftp-data", 20), ("ftps", 990),
    ("ftps-data", 989), ("gdomap", 538), ("gds-db", 3050), ("gds_db", 3050), ("git", 9418),
    ("gnunet", 2086), ("gnutella-rtr", 6347), ("gnutella-svc", 6346), ("gopher", 70), ("gpsd", 2947),
    ("gris", 2135), ("groupwise", 1677), ("gsidcap", 22128), ("gsiftp", 2811), ("gsigatekeeper", 2119),
    ("hkp", 11371), ("hprop", 754), ("http", 80), ("http-alt", 8080), ("https", 443), ("hylafax", 4559),
    ("iax", 4569), ("icp", 3130), ("icpv2", 3130), ("ident", 113), ("imap", 143), ("imap2", 143),
    ("imaps", 993), ("ingreslock", 1524), ("ipp", 631), ("iprop", 2121), ("ipsec-nat-t", 4500),
    ("ipx", 213), ("ircd", 6667), ("ircs-u", 6697), ("isakmp", 500), ("iscsi-target", 3260),
    ("isisd", 2608), ("isns", 3205), ("iso-tsap", 102), ("jabber-client", 5222), ("jabber-server", 5269),
    ("kamanda", 10081), ("kdc", 750), ("kerberos", 88), ("kerberos-adm", 749), ("kerberos-iv", 750),
    ("kerberos-master", 751), ("kerberos-sec", 88), ("kerberos4", 750), ("kerberos5", 88),
    ("kerberos_master", 751), ("kermit", 1649), ("klogin", 543), ("kpasswd", 464), ("krb-prop", 754),
    ("krb5", 88), ("krb5_prop", 754), ("krb_prop", 754), ("krcmd", 544), ("kshell", 544), ("l2f", 1701),
    ("l2tp", 1701), ("ldap", 389), ("ldaps", 636), ("ldp", 646), ("loc-srv", 135), ("login", 513),
    ("lotusnote", 1352), ("lotusnotes", 1352), ("lrrd", 4949), ("mail", 25), ("mailq", 174), ("mdns", 5353),
    ("microsoft-ds", 445), ("moira-db", 775), ("moira-update", 777), ("moira-ureg", 779), ("moira_db", 775),
    ("moira_update", 777), ("moira_ureg", 779), ("mon", 2583), ("ms-sql-m", 1434), ("ms-sql-s", 1433),
    ("ms-wbt-server", 3389), ("mtn", 4691), ("munin", 4949), ("mysql", 3306), ("mysql-proxy", 6446),
    ("nbd", 10809), ("netbios-dgm", 138), ("netbios-ns", 137), ("netbios-ssn", 139), ("netstat", 15),
    ("nfs", 2049), ("nicname", 43), ("nntp", 119), ("nntps", 563), ("nqs", 607), ("nrpe", 5666),
    ("nsca", 5667), ("ntalk", 518), ("ntp", 123), ("ntske", 4460), ("null", 9), ("nut", 3493),
    ("old-radacct", 1646), ("old-radius", 1645), ("omniorb", 8088), ("openvpn", 1194), ("ospf6d", 2606),
    ("ospfapi", 2607), ("ospfd", 2604), ("passwd-server", 752), ("passwd_server", 752), ("pawserv", 345),
    ("pop-3", 110), ("pop3", 110), ("pop3s", 995), ("poppassd", 106), ("portmapper", 111),
    ("postgres", 5432), ("postgresql", 5432), ("predict", 1210), ("printer", 515), ("proofd", 1093),
    ("ptp-event", 319), ("ptp-general", 320), ("puppet", 8140), ("qmqp", 628), ("qmtp", 209), ("qotd", 17),
    ("quote", 17), ("radacct", 1813), ("radius", 1812), ("radius-acct", 1813), ("radmin-port", 4899),
    ("readnews", 119), ("redis", 6379), ("remctl", 4373), ("ripd", 2602), ("ripngd", 2603),
    ("rmiregistry", 1099), ("rmtcfg", 1236), ("rootd", 1094), ("route", 520), ("routed", 520),
    ("router", 520), ("rpc2portmap", 369), ("rplay", 5555), ("rptp", 5556), ("rsync", 873),
    ("rtcm-sc104", 2101), ("rtsp", 554), ("sa-msg-port", 1646), ("saft", 487), ("sane", 6566),
    ("sane-port", 6566), ("saned", 6566), ("sge-execd", 6445), ("sge-qmaster", 6444), ("sge_execd", 6445),
    ("sge_qmaster", 6444), ("sgi-cad", 17004), ("sgi-cmsd", 17001), ("sgi-crsd", 17002), ("sgi-gcd", 17003),
    ("shell", 514), ("sieve", 4190), ("silc", 706), ("sink", 9), ("sip", 5060), ("sip-tls", 5061),
    ("skkserv", 1178), ("smtp", 25), ("smtps", 465), ("smux", 199), ("snmp", 161), ("snmp-trap", 162),
    ("snmptrap", 162), ("snntp", 563), ("snpp", 444), ("socks", 1080), ("source", 19), ("spamd", 783),
    ("spooler", 515), ("ssh", 22), ("ssmtp", 465), ("submission", 587), ("submissions", 465),
    ("subversion", 3690), ("sunrpc", 111), ("supfiledbg", 1127), ("supfilesrv", 871), ("suucp", 4031),
    ("svn", 3690), ("svrloc", 427), ("syslog", 514), ("syslog-tls", 6514), ("sysrqd", 4094), ("systat", 11),
    ("tacacs", 49), ("talk", 517), ("tap", 113), ("tcpmux", 1), ("telnet", 23), ("telnets", 992),
    ("tfido", 60177), ("tftp", 69), ("time", 37), ("timserver", 37), ("tinc", 655), ("tproxy", 8081),
    ("tsap", 102), ("ttytst", 19), ("untp", 119), ("urd", 465), ("users", 11), ("uucp", 540),
    ("uucpd", 540), ("venus", 2430), ("venus-se", 2431), ("wais", 210), ("webcache", 8080),
    ("webmin", 10000), ("who", 513), ("whod", 513), ("whois", 43), ("wnn6", 22273), ("www", 80),
    ("x11", 6000), ("x11-0", 6000), ("x11-1", 6001), ("x11-2", 6002), ("x11-3", 6003), ("x11-4", 6004),
    ("x11-5", 6005), ("x11-6", 6006), ("x11-7", 6007), ("xdmcp", 177), ("xfs", 7100), ("xinetd", 9098),
    ("xmms2", 9667), ("xmpp-client", 5222), ("xmpp-server", 5269), ("xtel", 1313), ("xtelw", 1314),
    ("z3950", 210), ("zabbix-agent", 10050), ("zabbix-trapper", 10051), ("zebra", 2601), ("zebrasrv", 2600),
    ("zephyr-clt", 2103), ("zephyr-hm", 2104), ("zephyr-srv", 2102), ("zope", 9673), ("zope-ftp", 8021),
    ("zserv", 346),
];

#[rustfmt::skip]
const ALIASES: &[(&str, u8)] = &[
    ("IP", 0), ("hopopt", 0), ("HOPOPT", 0), ("ICMP", 1), ("IGMP", 2), ("GGP", 3), ("IP-ENCAP", 4),
    ("ST", 5), ("TCP", 6), ("EGP", 8), ("IGP", 9), ("PUP", 12), ("UDP", 17), ("HMP", 20), ("XNS-IDP", 22),
    ("RDP", 27), ("ISO-TP4", 29), ("DCCP", 33), ("XTP", 36), ("DDP", 37), ("IDPR-CMTP", 38), ("IPv6", 41),
    ("IPv6-Route", 43), ("IPv6-Frag", 44), ("IDRP", 45), ("RSVP", 46), ("GRE", 47), ("IPSEC-ESP", 50),
    ("IPSEC-AH", 51), ("SKIP", 57), ("IPv6-ICMP", 58), ("IPv6-NoNxt", 59), ("IPv6-Opts", 60), ("RSPF", 73),
    ("CPHB", 73), ("VMTP", 81), ("EIGRP", 88), ("OSPFIGP", 89), ("AX.25", 93), ("IPIP", 94),
    ("ETHERIP", 97), ("ENCAP", 98), ("PIM", 103), ("IPCOMP", 108), ("VRRP", 112), ("L2TP", 115),
    ("ISIS", 124), ("SCTP", 132), ("FC", 133), ("Mobility-Header", 135), ("UDPLite", 136),
    ("MPLS-in-IP", 137), ("HIP", 139), ("Shim6", 140), ("WESP", 141), ("ROHC", 142), ("Ethernet", 143),
   
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_found_by_name() {
        assert!(SERVICES.is_sorted());
        assert_eq!([port_of("ssh"), port_of("domain"), port_of("https")], [Some(22), Some(53), Some(443)]);
        assert_eq!(port_of("ssh2"), None);
        assert_eq!(protocol_alias("TCP"), Some(6));
    }
}
