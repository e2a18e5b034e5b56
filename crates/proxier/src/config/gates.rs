//! Kubernetes' feature gates: those that change what this proxier does, and the names of all others, which a
//! configuration may set without effect here.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// The feature gates that were set, from `--feature-gates` and from `featureGates` of the file.
///
/// ```
/// use sluicegate_proxier::config::{FeatureGates, Gate};
///
/// let gates: FeatureGates = "AllowServiceExternalIPs=false,ContextualLogging=true".parse()?;
/// assert!(!gates.is_on(Gate::AllowServiceExternalIps) && gates.is_on(Gate::ComponentStatusz));
/// assert_eq!(gates.without_effect().map(|(name, _)| name).collect::<Vec<_>>(), ["ContextualLogging"]);
/// let error = "AllowServiceExternalIP=false".parse::<FeatureGates>().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "Kubernetes 1.37 has no gate \"AllowServiceExternalIP\"; did you mean AllowServiceExternalIPs?"
/// );
/// # Ok::<(), sluicegate_proxier::config::GateError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeatureGates(BTreeMap<String, bool>);

/// A feature gate that changes what a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Gate {
    /// `AllowServiceExternalIPs` (1.36, KEP-5707): off, `spec.externalIPs` of every Service is left out.
    AllowServiceExternalIps,
    /// `ComponentFlagz`: off, there is no `/flagz`.
    ComponentFlagz,
    /// `ComponentStatusz`: off, there is no `/statusz`.
    ComponentStatusz,
    /// `KubeProxyIPVS` (1.37): off, ipvs mode is refused.
    KubeProxyIpvs,
    /// `KubeProxyNFTablesLocalhostNodePorts` (1.37, KEP-6032): on, nftables mode answers TCP node ports on
    /// 127.0.0.1 and `::1`, where `--nodeport-addresses` names them.
    KubeProxyNftablesLocalhostNodePorts,
}

/// Which of `AllAlpha` and `AllBeta` covers a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Alpha,
    Beta,
    Other,
}

impl Gate {
    /// Every gate that changes what a node does.
    pub const ALL: [Self; 5] = [
        Self::AllowServiceExternalIps,
        Self::ComponentFlagz,
        Self::ComponentStatusz,
        Self::KubeProxyIpvs,
        Self::KubeProxyNftablesLocalhostNodePorts,
    ];

    /// Returns the name that Kubernetes gives it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AllowServiceExternalIps => "AllowServiceExternalIPs",
            Self::ComponentFlagz => "ComponentFlagz",
            Self::ComponentStatusz => "ComponentStatusz",
            Self::KubeProxyIpvs => "KubeProxyIPVS",
            Self::KubeProxyNftablesLocalhostNodePorts => "KubeProxyNFTablesLocalhostNodePorts",
        }
    }

    /// Returns what it does here when it is not as it is by default.
    #[must_use]
    pub const fn effect(self) -> &'static str {
        match self {
            Self::AllowServiceExternalIps => "false: spec.externalIPs of every Service is left out, and told",
            Self::ComponentFlagz => "false: no /flagz",
            Self::ComponentStatusz => "false: no /statusz",
            Self::KubeProxyIpvs => "false: ipvs mode is refused",
            Self::KubeProxyNftablesLocalhostNodePorts => {
                "true: in nftables mode TCP node ports answer on 127.0.0.1 and ::1, where --nodeport-addresses \
                 names them; all others are rejected on loopback addresses, and counted"
            }
        }
    }

    /// Returns the first version of Kubernetes that has it.
    #[must_use]
    pub const fn since(self) -> &'static str {
        match self {
            Self::ComponentFlagz | Self::ComponentStatusz => "1.32",
            Self::AllowServiceExternalIps => "1.36",
            Self::KubeProxyIpvs | Self::KubeProxyNftablesLocalhostNodePorts => "1.37",
        }
    }

    /// Returns whether it is on where nobody sets it.
    #[must_use]
    pub const fn default(self) -> bool {
        !matches!(self, Self::KubeProxyNftablesLocalhostNodePorts)
    }

    const fn stage(self) -> Stage {
        match self {
            Self::AllowServiceExternalIps | Self::KubeProxyIpvs => Stage::Other,
            Self::ComponentFlagz | Self::ComponentStatusz => Stage::Beta,
            Self::KubeProxyNftablesLocalhostNodePorts => Stage::Alpha,
        }
    }
}

impl FeatureGates {
    /// Sets a gate, which may be one without effect here.
    ///
    /// # Errors
    /// [`GateError`] when Kubernetes has no such gate, or one that cannot have this value.
    pub fn set(&mut self, name: &str, is_on: bool) -> Result<(), GateError> {
        if !is_feature_gate(name) {
            return Err(GateError::Unknown { name: name.to_owned(), meant: nearest(name) });
        }
        if !is_on && LOCKED_ON.contains(&name) {
            return Err(GateError::Locked { name: name.to_owned() });
        }
        self.0.insert(name.to_owned(), is_on);
        Ok(())
    }

    /// Returns whether a gate is on: as it was set, or as `AllAlpha` or `AllBeta` were, or by default.
    #[must_use]
    pub fn is_on(&self, gate: Gate) -> bool {
        let group = match gate.stage() {
            Stage::Alpha => self.0.get("AllAlpha"),
            Stage::Beta => self.0.get("AllBeta"),
            Stage::Other => None,
        };
        // `AllBeta` is off by default, and says nothing then.
        *self.0.get(gate.as_str()).or(group).unwrap_or(&gate.default())
    }

    /// Sets what `others` sets.
    pub fn override_with(&mut self, others: &Self) {
        self.0.extend(others.0.iter().map(|(name, is_on)| (name.clone(), *is_on)));
    }

    /// Returns the gates that were set and change nothing here, each with the reason.
    pub fn without_effect(&self) -> impl Iterator<Item = (&str, &'static str)> {
        let has_effect = |name: &str| Gate::ALL.iter().any(|gate| gate.as_str() == name);
        let names = self.0.keys().map(String::as_str).filter(move |name| !has_effect(name));
        names.filter(|name| !["AllAlpha", "AllBeta"].contains(name)).map(|name| (name, why_no_effect(name)))
    }

    /// Returns the gates that change what a node does and those that were set, each with its stage as
    /// Kubernetes writes it (empty where that is of no concern here) and whether it is on.
    pub fn all(&self) -> impl Iterator<Item = (&str, &'static str, bool)> {
        let ours = Gate::ALL.into_iter().map(|gate| {
            let stage = match gate.stage() {
                Stage::Alpha => "ALPHA",
                Stage::Beta => "BETA",
                Stage::Other => "",
            };
            (gate.as_str(), stage, self.is_on(gate))
        });
        let others = self.iter().filter(|(name, _)| !Gate::ALL.iter().any(|gate| gate.as_str() == *name));
        ours.chain(others.map(|(name, is_on)| (name, "", is_on)))
    }

    /// Returns the gates that were set, in the order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, bool)> {
        self.0.iter().map(|(name, is_on)| (name.as_str(), *is_on))
    }
}

impl FromStr for FeatureGates {
    type Err = GateError;

    /// Parses `NAME=true,OTHER=false`, as the flag takes it.
    fn from_str(text: &str) -> Result<Self, GateError> {
        let mut gates = Self::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let is_on = match value.trim() {
                "1" | "t" | "T" | "true" | "TRUE" | "True" => true,
                "0" | "f" | "F" | "false" | "FALSE" | "False" => false,
                other => {
                    return Err(GateError::Value { name: name.trim().to_owned(), value: other.to_owned() });
                }
            };
            gates.set(name.trim(), is_on)?;
        }
        Ok(gates)
    }
}

impl fmt::Display for FeatureGates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, is_on)) in self.iter().enumerate() {
            write!(f, "{}{name}={is_on}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

/// Why a feature gate cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GateError {
    /// Kubernetes has no such gate.
    #[error("Kubernetes 1.37 has no gate {name:?}{}", meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default())]
    Unknown {
        /// The name that was found.
        name: String,
        /// The nearest name of a gate.
        meant: Option<&'static str>,
    },
    /// The value is not a truth value.
    #[error("{name}: expected true or false, found {value:?}")]
    Value {
        /// The name of the gate.
        name: String,
        /// The value that was found.
        value: String,
    },
    /// The feature can no longer be turned off.
    #[error("{name}: expected true, as Kubernetes has locked it, found false")]
    Locked {
        /// The name of the gate.
        name: String,
    },
}

/// Returns whether Kubernetes 1.36 or 1.37 knows a feature gate of this name.
fn is_feature_gate(name: &str) -> bool {
    names().any(|known| known == name)
}

fn names() -> impl Iterator<Item = &'static str> {
    Gate::ALL.into_iter().map(Gate::as_str).chain(KNOWN.split_ascii_whitespace())
}

/// Returns the name that differs by the fewest letters, if those are no more than a third of the longer one.
/// Small letters for capitals are no difference to guess by.
fn nearest(name: &str) -> Option<&'static str> {
    let wanted = name.to_ascii_lowercase();
    let distance = |known: &'static str| {
        let most = known.len().max(wanted.len()).div_ceil(3);
        let distance = strsim::osa_distance(&known.to_ascii_lowercase(), &wanted);
        (distance <= most).then_some((distance, known))
    };
    names().filter_map(distance).min().map(|(_, known)| known)
}

/// Returns why a gate changes nothing here.
fn why_no_effect(name: &str) -> &'static str {
    match name {
        "ContextualLogging" | "LoggingAlphaOptions" | "LoggingBetaOptions" => "the log has its own form",
        "NFTablesProxyMode" => "nftables mode is always there",
        "NFTablesNetlink" => "the kernel is always asked over netlink",
        "WatchList"
        | "WatchListClient"
        | "InOrderInformers"
        | "InOrderInformersBatchProcess"
        | "InformerResourceVersion"
        | "AtomicFIFO"
        | "UnlockWhileProcessingFIFO"
        | "ClientsAllowCBOR"
        | "ClientsPreferCBOR" => "the API server is asked in one way, with JSON",
        name if name.starts_with("Win") => "it is for Windows",
        _ => "no part of it is in a proxy of services",
    }
}

/// Gates that Kubernetes lets nobody turn off, and whose feature is in use here.
const LOCKED_ON: [&str; 1] = ["NFTablesProxyMode"];

/// The others of `test/compatibility_lifecycle/reference/feature_list.md` of Kubernetes as of 1.36, those of
/// its logging, those that are new in 1.37, and the two for groups.
const KNOWN: &str = "AllAlpha AllBeta ContextualLogging LoggingAlphaOptions LoggingBetaOptions
NFTablesNetlink APIServerWebhookAuthenticationToken AtomicWriteVolumeUserFields CompositePodGroup
ControllerManagerReleaseLeaderElectionLockOnExit CRIListStreaming DeclarativeValidationBeta
DefaultPodSysctls DRADerivedAttributes DRADeviceCompatibilityGroups DRAListTypeAttributes
DRANodeAllocatableResources DRAOptionalNodeOperations DRAPartitionableDevicesType
DRAResourceClaimGranularStatusAuthorization DRAResourcePoolStatus DRAWorkloadResourceClaims
EmptyDirVolumeMode EtcdRangeStream ExcludeAdmissionWebhookVirtualResources ExtendWebSocketsToKubelet
GRPCContainerProbeTLS H2CContainerProbe HugepageAwareEviction InPlacePodVerticalScalingMemoryBackedVolumes
InPlacePodVerticalScalingSchedulerPreemption ManifestBasedAdmissionControlConfig NativeHistograms
NodeLifecycleConditions PersistentVolumeClaimUnusedSinceTime PodGroupPreemptionPolicy
PodLevelResourceManagers PodsAPI ShardedListAndWatch StaleControllerConsistencyDaemonSet
StaleControllerConsistencyJob StaleControllerConsistencyReplicaSet StaleControllerConsistencyStatefulSet
StatefulSetRecreateStrategy TopologyAwareWorkloadScheduling VolumeBindMountOptions WorkloadWithJob
APIResponseCompression APIServerIdentity APIServerTracing APIServingWithRoutine
AggregatedDiscoveryRemoveBetaType AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests
AllowOverwriteTerminationGracePeriodSeconds AllowParsingUserUIDFromCertAuth
AllowUnsafeMalformedObjectDeletion AnonymousAuthConfigurableEndpoints AnyVolumeDataSource AtomicFIFO
AuthorizeNodeWithSelectors AuthorizePodWebsocketUpgradeCreatePermission AuthorizeWithSelectors
BtreeWatchCache CBORServingAndStorage CPUManagerPolicyAlphaOptions CPUManagerPolicyBetaOptions
CPUManagerPolicyOptions CRDObservedGenerationTracking CRDValidationRatcheting CSIServiceAccountTokenSecrets
CSIVolumeHealth ChangeContainerStatusOnKubeletRestart ClearingNominatedNodeNameAfterBinding ClientsAllowCBOR
ClientsPreferCBOR CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook
ClusterTrustBundle ClusterTrustBundleProjection ConcurrentWatchObjectDecode ConsistentListFromCache
ConstrainedImpersonation ContainerCheckpoint ContainerRestartRules ContainerStopSignals
CoordinatedLeaderElection CrossNamespaceVolumeDataSource CustomCPUCFSQuotaPeriod
CustomResourceFieldSelectors DRAAdminAccess DRAConsumableCapacity DRADeviceBindingConditions
DRADeviceTaintRules DRADeviceTaints DRAExtendedResource DRAPartitionableDevices DRAPrioritizedList
DRAResourceClaimDeviceStatus DRASchedulerFilterTimeout DeclarativeValidation DeclarativeValidationTakeover
DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency DisableAllocatorDualWrite
DisableCPUQuotaWithExclusiveCPUs DisableNodeKubeProxyVersion DynamicResourceAllocation EnvFiles EventedPLEG
ExecProbeTimeout ExternalServiceAccountTokenSigner GangScheduling GenericWorkload GitRepoVolumeDriver
GracefulNodeShutdown GracefulNodeShutdownBasedOnPodPriority HPAConfigurableTolerance HPAScaleToZero
HonorPVReclaimPolicy HostnameOverride ImageMaximumGCAge ImageVolume ImageVolumeWithDigest InOrderInformers
InOrderInformersBatchProcess InPlacePodLevelResourcesVerticalScaling InPlacePodVerticalScaling
InPlacePodVerticalScalingAllocatedStatus InPlacePodVerticalScalingExclusiveCPUs
InPlacePodVerticalScalingExclusiveMemory InformerResourceVersion JobBackoffLimitPerIndex JobManagedBy
JobPodReplacementPolicy JobSuccessPolicy KMSv1 KubeletCgroupDriverFromCRI KubeletCrashLoopBackOffMax
KubeletEnsureSecretPulledImages KubeletFineGrainedAuthz KubeletInUserNamespace KubeletPSI
KubeletPodResourcesDynamicResources KubeletPodResourcesGet KubeletPodResourcesListUseActivePods
KubeletRegistrationGetOnExistsOnly KubeletSeparateDiskGC KubeletServiceAccountTokenForCredentialProviders
KubeletTracing ListFromCacheSnapshot LocalStorageCapacityIsolationFSQuotaMonitoring LogarithmicScaleDown
MatchLabelKeysInPodAffinity MatchLabelKeysInPodTopologySpread MatchLabelKeysInPodTopologySpreadSelectorMerge
MaxUnavailableStatefulSet MemoryQoS MultiCIDRServiceAllocator MutableCSINodeAllocatableCount
MutablePVNodeAffinity MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs
MutatingAdmissionPolicy NFTablesProxyMode NodeDeclaredFeatures NodeInclusionPolicyInPodTopologySpread
NodeLogQuery NodeSwap NominatedNodeNameForExpectation OpenAPIEnums OpportunisticBatching
OrderedNamespaceDeletion PodAndContainerStatsFromCRI PodCertificateRequest PodDeletionCost PodLevelResources
PodLifecycleSleepAction PodLifecycleSleepActionAllowZero PodLogsQuerySplitStreams
PodObservedGenerationTracking PodReadyToStartContainersCondition PodSchedulingReadiness
PodTopologyLabelsAdmission PortForwardWebsockets PreferSameTrafficDistribution PreventStaticPodAPIReferences
ProcMountType QOSReserved RecoverVolumeExpansionFailure RecursiveReadOnlyMounts
ReduceDefaultCrashLoopBackOffDecay RelaxedDNSSearchValidation RelaxedEnvironmentVariableValidation
RelaxedServiceNameValidation ReloadKubeletServerCertificateFile RemoteRequestHeaderUID
ResilientWatchCacheInitialization ResourceHealthStatus ResourceHealthStatusMessage
RestartAllContainersOnContainerExits RetryGenerateName RotateKubeletServerCertificate
RuntimeClassInImageCriApi SELinuxChangePolicy SELinuxMount SELinuxMountReadWriteOncePod
SchedulerAsyncAPICalls SchedulerAsyncPreemption SchedulerPopFromBackoffQ SchedulerQueueingHints
SeparateCacheWatchRPC SeparateTaintEvictionController ServiceAccountNodeAudienceRestriction
ServiceAccountTokenJTI ServiceAccountTokenNodeBinding ServiceAccountTokenNodeBindingValidation
ServiceAccountTokenPodNodeInfo SidecarContainers SizeBasedListCostEstimate
StatefulSetSemanticRevisionComparison StorageCapacityScoring StorageNamespaceIndex StorageVersionAPI
StorageVersionHash StorageVersionMigrator StreamingCollectionEncodingToJSON
StreamingCollectionEncodingToProtobuf StrictIPCIDRValidation StructuredAuthenticationConfiguration
StructuredAuthenticationConfigurationEgressSelector StructuredAuthenticationConfigurationJWKSMetrics
SupplementalGroupsPolicy SystemdWatchdog TaintTolerationComparisonOperators
TokenRequestServiceAccountUIDValidation TopologyManagerPolicyAlphaOptions TopologyManagerPolicyBetaOptions
TopologyManagerPolicyOptions TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation
UnknownVersionInteroperabilityProxy UnlockWhileProcessingFIFO UserNamespacesHostNetworkSupport
UserNamespacesSupport VolumeAttributesClass VolumeLimitScaling WatchCacheInitializationPostStartHook
WatchList WatchListClient WinDSR WinOverlay WindowsCPUAndMemoryAffinity WindowsGracefulNodeShutdown
WindowsHostNetwork";

#[cfg(test)]
mod tests {
    use super::*;

    fn gates(text: &str) -> FeatureGates {
        text.parse().unwrap()
    }

    #[test]
    fn a_group_sets_those_of_its_stage_that_nobody_sets() {
        let localhost = Gate::KubeProxyNftablesLocalhostNodePorts;
        assert!(!gates("").is_on(localhost));
        assert!(gates("AllAlpha=true").is_on(localhost));
        assert!(!gates(&format!("{}=false,AllAlpha=true", localhost.as_str())).is_on(localhost));
        assert!(!gates("AllBeta=false").is_on(Gate::ComponentStatusz));
        let both = gates("AllBeta=false,AllAlpha=false");
        assert!(both.is_on(Gate::AllowServiceExternalIps) && both.is_on(Gate::KubeProxyIpvs));
        assert_eq!(both.without_effect().count(), 0);
    }

    #[test]
    fn names_and_values_are_checked() {
        let wrong = |text: &str| text.parse::<FeatureGates>().unwrap_err().to_string();
        assert_eq!(
            wrong("KubeProxyIPVs=true"),
            "Kubernetes 1.37 has no gate \"KubeProxyIPVs\"; did you mean KubeProxyIPVS?"
        );
        assert_eq!(wrong("Nonsense=true"), "Kubernetes 1.37 has no gate \"Nonsense\"");
        assert_eq!(wrong("AllAlpha"), "AllAlpha: expected true or false, found \"\"");
        assert_eq!(
            wrong("NFTablesProxyMode=false"),
            "NFTablesProxyMode: expected true, as Kubernetes has locked it, found false"
        );
        assert_eq!(gates(" AllAlpha = T , AllBeta=0 ").to_string(), "AllAlpha=true,AllBeta=false");
    }
}
