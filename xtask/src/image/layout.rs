//! The OCI image layout (image-spec 1.0): one layer of files, its configuration, manifest and index. The same
//! files give the same bytes: no time, no owner and no order of a machine is in them.

use std::collections::BTreeMap;
use std::io::{self, Write as _};

use flate2::{Compression, GzBuilder};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tar::{EntryType, Header};

/// An image of one layer.
pub(super) struct Image {
    /// The name, without a registry.
    pub name: String,
    /// The version, which is the tag.
    pub version: String,
    /// The architecture, by Go's name.
    pub architecture: &'static str,
    /// The user and group that the program runs as, as numbers.
    pub user: String,
    /// The path of the program.
    pub entrypoint: String,
    /// Labels of the image.
    pub labels: BTreeMap<String, String>,
    /// The files at the root.
    pub files: Vec<File>,
}

/// A file of the image, owned by root.
pub(super) struct File {
    /// The name.
    pub name: String,
    /// The content.
    pub content: Content,
    /// The permissions.
    pub mode: u32,
    /// The capabilities that whoever executes it is permitted, as a set of bits.
    pub permitted: Option<u32>,
}

/// What a file is.
pub(super) enum Content {
    /// A regular file.
    Bytes(Vec<u8>),
    /// A symbolic link to this path.
    Link(String),
}

/// The files of a layout, by their paths.
pub(super) type Blobs = BTreeMap<String, Vec<u8>>;

impl Image {
    /// Returns the files of the image layout.
    pub(super) fn layout(&self) -> io::Result<Blobs> {
        let layer = self.layer()?;
        let mut blobs = Blobs::new();
        let config = json!({
            "architecture": self.architecture,
            "os": "linux",
            "created": "1970-01-01T00:00:00Z",
            "config": {
                "User": self.user,
                "Entrypoint": [self.entrypoint],
                "WorkingDir": "/",
                "Labels": self.labels,
            },
            "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", digest(&layer))]},
            "history": [{"created": "1970-01-01T00:00:00Z", "created_by": "cargo xtask image"}],
        });
        let config = blob(&mut blobs, "application/vnd.oci.image.config.v1+json", bytes(&config)?);
        let layer = blob(&mut blobs, "application/vnd.oci.image.layer.v1.tar+gzip", gzip(&layer)?);
        // For `docker load` before 25, which knows no index.
        let path = |descriptor: &Value| blob_path(descriptor["digest"].as_str().unwrap_or_default());
        let reference = format!("{}:{}", self.name, self.version);
        let docker = json!([{"Config": path(&config), "RepoTags": [reference], "Layers": [path(&layer)]}]);
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": config,
            "layers": [layer],
            "annotations": self.labels,
        });
        let mut manifest = blob(&mut blobs, "application/vnd.oci.image.manifest.v1+json", bytes(&manifest)?);
        manifest["platform"] = json!({"architecture": self.architecture, "os": "linux"});
        manifest["annotations"] = json!({
            "org.opencontainers.image.ref.name": self.version,
            // What containerd calls it, and Kubernetes asks for.
            "io.containerd.image.name": format!("docker.io/library/{reference}"),
        });
        let index = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [manifest],
        });
        blobs.insert("index.json".to_owned(), bytes(&index)?);
        blobs.insert("manifest.json".to_owned(), bytes(&docker)?);
        blobs.insert("oci-layout".to_owned(), bytes(&json!({"imageLayoutVersion": "1.0.0"}))?);
        Ok(blobs)
    }

    fn layer(&self) -> io::Result<Vec<u8>> {
        let mut tar = tar::Builder::new(Vec::new());
        for file in &self.files {
            if let Some(permitted) = file.permitted {
                // As star and GNU tar name extended attributes in a PAX header.
                tar.append_pax_extensions([(
                    "SCHILY.xattr.security.capability",
                    &capability(permitted)[..],
                )])?;
            }
            match &file.content {
                Content::Bytes(bytes) => {
                    tar.append_data(&mut header(file.mode, bytes.len())?, &file.name, bytes.as_slice())?;
                }
                Content::Link(target) => {
                    let mut header = header(file.mode, 0)?;
                    header.set_entry_type(EntryType::Symlink);
                    tar.append_link(&mut header, &file.name, target)?;
                }
            }
        }
        tar.into_inner()
    }
}

/// Returns the files of a layout as one archive.
pub(super) fn archive(blobs: &Blobs) -> io::Result<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::new());
    for (path, content) in blobs {
        tar.append_data(&mut header(0o644, content.len())?, path, content.as_slice())?;
    }
    tar.into_inner()
}

/// Adds a blob and returns its descriptor.
fn blob(blobs: &mut Blobs, media_type: &str, content: Vec<u8>) -> Value {
    let digest = format!("sha256:{}", digest(&content));
    let descriptor = json!({"mediaType": media_type, "digest": digest, "size": content.len()});
    blobs.insert(blob_path(&digest), content);
    descriptor
}

fn blob_path(digest: &str) -> String {
    format!("blobs/{}", digest.replace(':', "/"))
}

/// Returns a header for a file of root, from the beginning of time.
fn header(mode: u32, size: usize) -> io::Result<Header> {
    let mut header = Header::new_ustar();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(u64::try_from(size).map_err(io::Error::other)?);
    Ok(header)
}

/// Returns the value of `security.capability`: `struct vfs_cap_data` of version 2 (`linux/capability.h`), 32
/// bits of permitted and of inheritable capabilities, twice.
fn capability(permitted: u32) -> [u8; 20] {
    const VFS_CAP_REVISION_2: u32 = 0x0200_0000;
    let mut value = [0; 20];
    let (revision, sets) = value.split_at_mut(4);
    revision.copy_from_slice(&VFS_CAP_REVISION_2.to_le_bytes());
    sets[..4].copy_from_slice(&permitted.to_le_bytes());
    value
}

fn gzip(content: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    encoder.write_all(content)?;
    encoder.finish()
}

fn bytes(value: &Value) -> io::Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(io::Error::other)
}

/// Returns the SHA-256 of some bytes in hexadecimal digits.
fn digest(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image() -> Image {
        let file = |name: &str, permitted| File {
            name: name.to_owned(),
            content: Content::Bytes(vec![7; 1000]),
            mode: 0o755,
            permitted,
        };
        Image {
            name: "a".to_owned(),
            version: "1".to_owned(),
            architecture: "amd64",
            user: "1:1".to_owned(),
            entrypoint: "/program".to_owned(),
            labels: [("licenses".to_owned(), "MIT".to_owned())].into(),
            files: vec![file("program", Some(1 << 12)), file("LICENSE", None)],
        }
    }

    #[test]
    fn the_same_files_give_the_same_bytes() {
        let (one, other) = (image().layout().unwrap(), image().layout().unwrap());
        assert_eq!(one, other);
        assert_eq!(archive(&one).unwrap(), archive(&other).unwrap());
    }

    #[test]
    fn every_digest_leads_to_its_blob() {
        let blobs = image().layout().unwrap();
        let read = |descriptor: &Value| -> &[u8] {
            let content = &blobs[&blob_path(descriptor["digest"].as_str().unwrap())];
            assert_eq!(descriptor["size"], content.len());
            assert_eq!(descriptor["digest"], format!("sha256:{}", digest(content)));
            content
        };
        let index: Value = serde_json::from_slice(&blobs["index.json"]).unwrap();
        let manifest: Value = serde_json::from_slice(read(&index["manifests"][0])).unwrap();
        let config: Value = serde_json::from_slice(read(&manifest["config"])).unwrap();
        let mut layer = Vec::new();
        let compressed = read(&manifest["layers"][0]);
        io::Read::read_to_end(&mut flate2::read::GzDecoder::new(compressed), &mut layer).unwrap();
        assert_eq!(config["rootfs"]["diff_ids"][0], format!("sha256:{}", digest(&layer)));
        assert_eq!(blobs.len(), 6);
    }

    #[test]
    fn the_capability_is_an_attribute_of_the_program_alone() {
        let layer = image().layer().unwrap();
        let mut archive = tar::Archive::new(layer.as_slice());
        let found: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let mut entry = entry.unwrap();
                let attributes = entry.pax_extensions().unwrap().into_iter().flatten();
                let values: Vec<_> = attributes.map(|one| one.unwrap().value_bytes().to_vec()).collect();
                (entry.path().unwrap().display().to_string(), entry.header().mode().unwrap(), values)
            })
            .collect();
        // What `setcap cap_net_admin=p` writes: no effective bit in the first word.
        let expected = [[0, 0, 0, 2], [0, 16, 0, 0], [0; 4], [0; 4], [0; 4]].concat();
        assert_eq!(
            found,
            [("program".to_owned(), 0o755, vec![expected]), ("LICENSE".to_owned(), 0o755, vec![])]
        );
    }
}
