//! The manifests of `deploy/`: what kustomize makes of them is what the cluster takes, and what the proxier
//! needs and no more.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Container, PodSpec, SecurityContext, ServiceAccount};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sluicegate_proxier::Mode;
use sluicegate_proxier::config::Config;

/// The objects of an overlay, and the files of the `ConfigMaps` that it generates.
#[derive(Default)]
struct Built {
    objects: Vec<Value>,
    config_maps: Vec<(String, PathBuf)>,
    files: BTreeSet<PathBuf>,
}

/// Builds a directory as `kustomize build` does: resources, generated `ConfigMaps`, images, patches.
fn build(directory: &Path, built: &mut Built) {
    let path = directory.join("kustomization.yaml");
    let kustomization = yaml(&path, built);
    for (field, _) in kustomization.as_object().expect("well-formed") {
        let known =
            ["apiVersion", "kind", "namespace", "resources", "configMapGenerator", "images", "patches"];
        assert!(known.contains(&field.as_str()), "{}: what does {field} do?", path.display());
    }
    for resource in strings(&kustomization["resources"]) {
        let place = directory.join(&resource);
        if place.is_dir() {
            build(&place, built);
        } else {
            let object = yaml(&place, built);
            built.objects.push(object);
        }
    }
    for generated in array(&kustomization["configMapGenerator"]) {
        let name = text(&generated["name"]);
        let files = strings(&generated["files"]);
        let replaced = built.config_maps.iter().position(|(other, _)| *other == name);
        assert_eq!(generated["behavior"] == "replace", replaced.is_some(), "{name}");
        if let Some(replaced) = replaced {
            built.config_maps.remove(replaced);
        }
        for file in files {
            let path = directory.join(file);
            built.files.insert(path.canonicalize().expect("well-formed"));
            built.config_maps.push((name.clone(), path));
        }
    }
    for patch in array(&kustomization["patches"]) {
        let patch = yaml(&directory.join(text(&patch["path"])), built);
        let same = |object: &&mut Value| {
            ["/kind", "/metadata/name"].iter().all(|at| object.pointer(at) == patch.pointer(at))
        };
        merge(built.objects.iter_mut().find(same).expect("a patch has its object"), &patch);
    }
    for image in array(&kustomization["images"]) {
        let (from, tag) = (text(&image["name"]), text(&image["newTag"]));
        let to = image["newName"].as_str().unwrap_or(&from).to_owned();
        let mut found = 0;
        for kind in ["initContainers", "containers"] {
            for object in &mut built.objects {
                let Some(containers) = object.pointer_mut(&format!("/spec/template/spec/{kind}")) else {
                    continue;
                };
                for container in containers
                    .as_array_mut()
                    .expect("well-formed")
                    .iter_mut()
                    .filter(|one| one["image"] == from)
                {
                    container["image"] = format!("{to}:{tag}").into();
                    found += 1;
                }
            }
        }
        assert_eq!(found, 2, "{from} is the image of two containers");
    }
}

/// Merges a strategic patch: objects by field, lists of named objects by name.
fn merge(into: &mut Value, patch: &Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (field, value) in patch {
                merge(into.entry(field).or_insert(Value::Null), value);
            }
        }
        (Value::Array(into), Value::Array(patch)) if patch.iter().all(|one| one["name"].is_string()) => {
            for one in patch {
                let old = into.iter_mut().find(|old| old["name"] == one["name"]);
                merge(old.unwrap_or_else(|| panic!("nothing is called {}", one["name"])), one);
            }
        }
        (into, patch) => *into = patch.clone(),
    }
}

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").canonicalize().expect("well-formed")
}

fn overlay(name: &str) -> Built {
    let mut built = Built::default();
    build(&deploy().join("overlays").join(name), &mut built);
    built
}

fn yaml(path: &Path, built: &mut Built) -> Value {
    built.files.insert(path.canonicalize().unwrap_or_else(|error| panic!("{}: {error}", path.display())));
    serde_yaml::from_str(&fs::read_to_string(path).expect("well-formed"))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn strings(value: &Value) -> Vec<String> {
    array(value).iter().map(text).collect()
}

fn text(value: &Value) -> String {
    value.as_str().expect("a string").to_owned()
}

impl Built {
    /// The object of a kind, which has no field that the API does not have: it would be left out.
    fn object<T: DeserializeOwned + serde::Serialize>(&self, kind: &str) -> T {
        let object =
            self.objects.iter().find(|object| object["kind"] == kind).expect("it is among the resources");
        let typed: T =
            serde_json::from_value(object.clone()).unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert_eq!(serde_json::to_value(&typed).expect("well-formed"), *object, "every field is of the API");
        typed
    }

    fn pod(&self) -> PodSpec {
        self.object::<DaemonSet>("DaemonSet").spec.expect("well-formed").template.spec.expect("well-formed")
    }

    fn config(&self) -> Config {
        let [(name, path)] = self.config_maps.as_slice() else { panic!("one file") };
        assert_eq!(name, "sluicegate-proxier");
        Config::read(path).unwrap_or_else(|error| panic!("{error}"))
    }
}

const OVERLAYS: [&str; 2] = ["kubeadm", "kind"];

#[test]
fn every_file_is_of_an_overlay_and_every_object_of_the_api() {
    let mut files = BTreeSet::new();
    for name in OVERLAYS {
        let built = overlay(name);
        let kinds: BTreeSet<_> = built.objects.iter().map(|object| text(&object["kind"])).collect();
        assert_eq!(kinds, ["ClusterRoleBinding", "DaemonSet", "ServiceAccount"].map(str::to_owned).into());
        let account: ServiceAccount = built.object("ServiceAccount");
        assert_eq!(account.metadata.name, built.pod().service_account_name);
        files.extend(built.files);
    }
    let (mut all, mut directories) = (BTreeSet::new(), vec![deploy()]);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).expect("well-formed") {
            let path = entry.expect("well-formed").path();
            if path.is_dir() {
                directories.push(path);
            } else {
                all.insert(path);
            }
        }
    }
    let beside: Vec<_> = all.difference(&files).map(|path| path.file_name().expect("well-formed")).collect();
    assert_eq!(beside, ["README.md", "kube-proxy-affinity.yaml"]);
}

#[test]
fn its_rights_are_those_of_node_proxier() {
    // tests/kube/rights.rs shows that they suffice.
    let binding: ClusterRoleBinding = overlay("kubeadm").object("ClusterRoleBinding");
    let role = binding.role_ref;
    assert_eq!((role.kind.as_str(), role.name.as_str()), ("ClusterRole", "system:node-proxier"));
    let [subject] = binding.subjects.expect("well-formed").try_into().expect("well-formed");
    let place = (subject.kind, subject.name, subject.namespace.expect("well-formed"));
    assert_eq!(place, ("ServiceAccount".into(), "sluicegate-proxier".into(), "kube-system".into()));
}

#[test]
fn the_proxier_is_not_root_and_has_one_capability() {
    for name in OVERLAYS {
        let pod = overlay(name).pod();
        let [proxier] = pod.containers.as_slice() else { panic!("one container") };
        let SecurityContext { capabilities, privileged, read_only_root_filesystem, run_as_non_root, .. } =
            proxier.security_context.clone().expect("well-formed");
        let capabilities = capabilities.expect("well-formed");
        assert_eq!(capabilities.add, Some(vec!["NET_ADMIN".to_owned()]));
        assert_eq!(capabilities.drop, Some(vec!["ALL".to_owned()]));
        assert_eq!((privileged, read_only_root_filesystem, run_as_non_root), (None, Some(true), Some(true)));
        assert!(pod.host_pid.is_none() && pod.host_network == Some(true));
    }
}

#[test]
fn its_command_lines_are_valid_and_its_configuration_is_read_without_a_remark() {
    for name in OVERLAYS {
        let built = overlay(name);
        let config = built.config();
        assert_eq!((config.mode, config.unused.as_slice()), (Some(Mode::Nftables), &[][..]), "{name}");
        let pod = built.pod();
        let containers = pod.init_containers.iter().flatten().chain(&pod.containers);
        for Container { args, volume_mounts, image, .. } in containers {
            let args = args.clone().expect("well-formed");
            let mount = &volume_mounts.as_ref().expect("well-formed")[0].mount_path;
            assert!(args.contains(&format!("--config={mount}/config.conf")), "{args:?}");
            assert_eq!(config.kubeconfig, Some(Path::new(mount).join("kubeconfig.conf")));
            assert_eq!(
                image.as_ref().expect("well-formed").rsplit_once(':').expect("well-formed").1,
                env!("CARGO_PKG_VERSION")
            );
            // Whatever is wrong with the words is told before the file that is missing here.
            let output = std::process::Command::new(env!("CARGO_BIN_EXE_sluicegate-proxier"));
            let output = { output }.args(&args).output().expect("well-formed");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(said.contains("config.conf: ") && said.contains("No such file"), "{said}");
        }
    }
    assert_eq!(overlay("kind").config().conntrack.max_per_core, Some(0));
}

#[test]
fn a_node_has_either_proxy_by_its_label() {
    let selector = overlay("kubeadm").pod().node_selector.expect("well-formed");
    assert_eq!(selector["service-proxy"], "sluicegate");
    let patch = yaml(&deploy().join("kube-proxy-affinity.yaml"), &mut Built::default());
    let daemon_set: DaemonSet = serde_json::from_value(serde_json::json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {},
        "spec": {"selector": {}, "template": patch["spec"]["template"]},
    }))
    .expect("well-formed");
    let affinity = daemon_set
        .spec
        .expect("well-formed")
        .template
        .spec
        .expect("well-formed")
        .affinity
        .expect("well-formed")
        .node_affinity
        .expect("well-formed");
    let terms = affinity
        .required_during_scheduling_ignored_during_execution
        .expect("well-formed")
        .node_selector_terms;
    let [expression] = terms[0].match_expressions.as_deref().expect("well-formed") else {
        panic!("one expression")
    };
    let (operator, values) =
        (expression.operator.as_str(), expression.values.as_deref().expect("well-formed"));
    assert_eq!(
        (expression.key.as_str(), operator, values),
        ("service-proxy", "NotIn", &["sluicegate".to_owned()][..])
    );
}
