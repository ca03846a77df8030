//! dm: what a store sends beside an APK, a profile of many users ("cloud profile") and what was verified already.
//!
//! `primary.prof` and `primary.vdex` are the names in it (`kDexMetadataProfileEntry`, libprofile/profile/profile_compilation_info.cc;
//! `kVdexNameInDmFile`, runtime/vdex_file.h).

use super::zip_directory::{members, stored};
use super::{FormatError, Profile, Vdex};

/// What a dm file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DexMetadata {
    /// Names of its members.
    pub members: Vec<String>,
    /// It holds a profile.
    pub has_profile: bool,
    /// It holds a vdex file.
    pub has_vdex: bool,
    /// The profile's header, where it is not compressed.
    pub profile: Option<Profile>,
    /// The vdex file's header, where it is not compressed.
    pub vdex: Option<Vdex>,
}

impl DexMetadata {
    /// Reads it.
    ///
    /// # Errors
    /// It is no zip file.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let members = members(bytes)?;
        let of = |name: &str| members.iter().find(|member| member.name == name);
        let (profile, vdex) = (of("primary.prof"), of("primary.vdex"));
        Ok(Self {
            has_profile: profile.is_some(),
            has_vdex: vdex.is_some(),
            profile: profile.and_then(|member| Profile::parse(stored(bytes, member)?).ok()),
            vdex: vdex.and_then(|member| Vdex::parse(stored(bytes, member)?).ok()),
            members: members.iter().map(|member| member.name.clone()).collect(),
        })
    }
}
