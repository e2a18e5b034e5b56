//! The recipes. Each file is whole: it can be copied to the `src/main.rs` of another package.
#![allow(unreachable_pub)]

mod balance_nftables;
mod balance_udp;
mod ban_for_a_while;
mod block_list;
mod captive_portal;
mod change_rule;
mod check_file;
mod count_customers;
mod delete_if_there;
mod detect_conflict;
mod dispatch;
mod drain_server;
mod embed_services;
mod explain_refusal;
mod find_flow;
mod follow_changes;
mod follow_flows;
mod forward_ports;
mod in_tokio;
mod insert_delete;
mod ipset_errors;
mod ipset_replace;
mod ipset_restore;
mod ipset_sync;
mod iptables_change;
mod iptables_check;
mod iptables_counters;
mod iptables_ensure;
mod iptables_find_jumps;
mod iptables_same_rule;
mod iptables_to_nft;
mod ipvs_difference;
mod isolate_networks;
mod kube_names;
mod list_json;
mod load_file;
mod load_text;
mod log_drops;
mod many_namespaces;
mod mark_flows;
mod million_list;
mod nat_container;
mod open_port;
mod other_namespace;
mod plan_elsewhere;
mod plan_iptables;
mod plan_nftables;
mod probe_kernel;
mod quota;
mod rate_limit;
mod raw_message;
mod redirect_dns;
mod refresh_list;
mod roll_back;
mod rule_counters;
mod save_and_restore;
mod scripted_kernel;
mod shared_table;
mod stale_flows;
mod trace_drop;
mod which_endpoints;
mod without_root;
mod zones;

use std::error::Error;

/// A recipe.
pub(crate) struct Recipe {
    /// What the list has it under.
    pub area: &'static str,
    pub main: fn() -> Result<(), Box<dyn Error>>,
    module: &'static str,
    source: &'static str,
}

impl Recipe {
    /// Its name on the command line.
    pub(crate) fn name(&self) -> String {
        self.module.replace('_', "-")
    }

    /// What its first line says.
    pub(crate) fn title(&self) -> &'static str {
        self.source.lines().next().unwrap_or_default().trim_start_matches("//! ")
    }
}

macro_rules! recipes {
    ($($area:literal: $($module:ident)+;)+) => {
        &[$($(Recipe {
            area: $area,
            main: $module::main,
            module: stringify!($module),
            source: include_str!(concat!(stringify!($module), ".rs")),
        },)+)+]
    };
}

/// All recipes, in the order of the guide.
pub(crate) const ALL: &[Recipe] = recipes! {
    "Firewalls": open_port load_text load_file check_file dispatch zones rate_limit log_drops trace_drop
        rule_counters insert_delete save_and_restore roll_back;
    "Lists": block_list refresh_list million_list ban_for_a_while count_customers quota;
    "Translation and balancing": nat_container forward_ports isolate_networks redirect_dns captive_portal balance_nftables;
    "Living with others": shared_table change_rule detect_conflict follow_changes list_json;
    "Writing programs": delete_if_there explain_refusal without_root probe_kernel in_tokio
        other_namespace many_namespaces;
    "ipset": ipset_sync ipset_replace ipset_restore ipset_errors;
    "iptables": iptables_ensure iptables_change iptables_check iptables_same_rule iptables_find_jumps
        iptables_counters iptables_to_nft;
    "Connections": find_flow follow_flows mark_flows stale_flows;
    "IPVS": balance_udp drain_server ipvs_difference;
    "Services": embed_services which_endpoints plan_nftables plan_elsewhere plan_iptables kube_names;
    "Netlink": raw_message scripted_kernel;
};
