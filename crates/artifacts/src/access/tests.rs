//! Each rule of the evaluator once, with the near miss beside it, and the smallest change for it. Agreement with the kernel:
//! `tests/kernel.rs`.

use super::*;
use proptest::prelude::*;

fn component(path: &str, kind: FileKind, mode: u32, uid: u32, gid: u32) -> Component {
    let (acl, mount) = (AclFact::None, MountFacts::default());
    Component { path: path.into(), kind, mode, uid, gid, acl, immutable: false, mount }
}

fn directory(path: &str, mode: u32) -> Component {
    component(path, FileKind::Directory, mode, 0, 0)
}

fn file(mode: u32) -> Component {
    component("/d/f", FileKind::Regular, mode, 0, 0)
}

fn lookup(directory: Component, file: Component) -> Lookup {
    Lookup {
        steps: vec![Step::Search(self::directory("/", 0o755)), Step::Search(directory)],
        end: LookupEnd::File(file),
        protected_symlinks: Some(true),
    }
}

fn in_open_directory(file: Component) -> Lookup {
    lookup(directory("/d", 0o755), file)
}

fn nobody() -> Identity {
    Identity::new(65534, 65534, vec![100])
}

fn denied_by(identity: &Identity, lookup: &Lookup, access: Access) -> Option<(String, Rule)> {
    match decide(identity, lookup, access) {
        Decision::Denied(denial) => Some((denial.path.display().to_string(), denial.rule)),
        Decision::Allowed => None,
        Decision::Unknown { why } => panic!("unknown: {why}"),
    }
}

fn commands(identity: &Identity, lookup: &Lookup, access: Access) -> Vec<String> {
    let changes = smallest_change(identity, lookup, access).unwrap_or_default();
    changes.iter().map(Change::command).collect()
}

fn acl(entries: &[(AclTag, u8)]) -> AclFact {
    let entries = entries.iter().map(|(tag, grants)| AclEntry { tag: *tag, grants: *grants }).collect();
    AclFact::Entries(Acl::of_entries(entries).unwrap())
}

#[test]
fn the_bits_of_others_the_group_and_the_owner_deny_each_whom_they_are_for() {
    let private = in_open_directory(file(0o640));
    assert_eq!(denied_by(&nobody(), &private, Access::Read), Some(("/d/f".into(), Rule::OtherBits)));
    let member = Identity::new(65534, 0, vec![]);
    assert_eq!(denied_by(&member, &private, Access::Read), None);
    assert_eq!(denied_by(&member, &private, Access::Write), Some(("/d/f".into(), Rule::GroupBits)));
    // The owner is judged by the owner's bits, also where all others may read.
    let own = in_open_directory(Component { uid: 65534, ..file(0o044) });
    assert_eq!(denied_by(&nobody(), &own, Access::Read), Some(("/d/f".into(), Rule::OwnerBits)));
    assert_eq!(commands(&nobody(), &own, Access::Read), ["chmod u+r /d/f"]);
}

#[test]
fn a_directory_that_cannot_be_searched_denies_before_the_file_and_both_are_in_the_change() {
    let closed = lookup(directory("/d", 0o700), file(0o600));
    assert_eq!(denied_by(&nobody(), &closed, Access::Read), Some(("/d".into(), Rule::OtherBits)));
    assert_eq!(commands(&nobody(), &closed, Access::Read), ["chmod o+x /d", "chmod o+r /d/f"]);
    assert_eq!(denied_by(&Identity::new(0, 0, vec![]), &closed, Access::Read), None);
}

#[test]
fn entries_of_a_list_deny_by_user_group_mask_and_others() {
    let with = |named: (AclTag, u8), mask: u8| {
        let list = [(AclTag::Owner, 6), (AclTag::OwningGroup, 4), named, (AclTag::Mask, mask), (AclTag::Other, 0)];
        let mut list = list.to_vec();
        list.sort();
        in_open_directory(Component { acl: acl(&list), ..file(0o600 | u32::from(mask) << 3) })
    };
    let rule = |lookup: &Lookup| denied_by(&nobody(), lookup, Access::Read).map(|(_, rule)| rule);
    assert_eq!(rule(&with((AclTag::User(65534), 2), 6)), Some(Rule::AclUser));
    assert_eq!(rule(&with((AclTag::User(65534), 4), 4)), None);
    assert_eq!(rule(&with((AclTag::User(65534), 4), 2)), Some(Rule::AclMask));
    assert_eq!(rule(&with((AclTag::Group(100), 2), 6)), Some(Rule::AclGroup));
    assert_eq!(rule(&with((AclTag::Group(100), 4), 4)), None);
    assert_eq!(rule(&with((AclTag::Group(99), 4), 4)), Some(Rule::AclOther));
    let narrow = with((AclTag::User(65534), 2), 2);
    assert_eq!(commands(&nobody(), &narrow, Access::Read), ["setfacl -m u:65534:rw-,m::rw- /d/f"]);
}

#[test]
fn a_list_with_an_empty_mask_is_not_looked_at_and_the_bits_of_others_decide() {
    let list = [(AclTag::Owner, 6), (AclTag::User(65534), 4), (AclTag::OwningGroup, 4), (AclTag::Mask, 0)];
    let list = acl(&[&list[..], &[(AclTag::Other, 0)]].concat());
    let skipped = in_open_directory(Component { acl: list, ..file(0o600) });
    assert_eq!(denied_by(&nobody(), &skipped, Access::Read), Some(("/d/f".into(), Rule::OtherBits)));
    assert_eq!(commands(&nobody(), &skipped, Access::Read), ["setfacl -m u:65534:r--,m::r-- /d/f"]);
}

#[test]
fn capabilities_override_all_but_executing_what_nobody_may_execute() {
    let root = Identity::new(0, 0, vec![]);
    let of_another = |mode| in_open_directory(Component { uid: 7, gid: 7, ..file(mode) });
    assert_eq!(denied_by(&root, &of_another(0o000), Access::Write), None);
    assert_eq!(denied_by(&root, &of_another(0o010), Access::Execute), None);
    assert_eq!(denied_by(&root, &of_another(0o644), Access::Execute).unwrap().1, Rule::OtherBits);
    let mut reader = nobody();
    reader.capabilities.dac_read_search = true;
    let closed = lookup(directory("/d", 0o700), file(0o600));
    assert_eq!(denied_by(&reader, &closed, Access::Read), None);
    assert_eq!(denied_by(&reader, &closed, Access::Write).unwrap().1, Rule::OtherBits);
}

#[test]
fn a_capability_of_a_user_namespace_counts_only_for_files_whose_ids_it_maps() {
    let range = IdRange { first: 100_000, count: 65_536 };
    let namespace = UserNamespace::Mapped { uids: vec![range], gids: vec![range] };
    let container = Identity { uid: 100_000, gid: 100_000, namespace, ..Identity::new(0, 0, vec![]) };
    let owned_by = |id| in_open_directory(Component { uid: id, gid: id, ..file(0o600) });
    assert_eq!(denied_by(&container, &owned_by(100_005), Access::Read), None);
    assert_eq!(denied_by(&container, &owned_by(0), Access::Read).unwrap().1, Rule::OtherBits);
}

#[test]
fn mounts_and_the_immutable_flag_deny_what_no_permission_changes() {
    let on_mount_facts = || MountFacts { read_only: true, no_exec: true, ..MountFacts::default() };
    let on_mount = in_open_directory(Component { mount: on_mount_facts(), ..file(0o777) });
    assert_eq!(denied_by(&nobody(), &on_mount, Access::Read), None);
    assert_eq!(denied_by(&nobody(), &on_mount, Access::Write).unwrap().1, Rule::ReadOnlyMount);
    assert_eq!(denied_by(&nobody(), &on_mount, Access::Execute).unwrap().1, Rule::NoExecMount);
    let closed = in_open_directory(Component { mount: on_mount_facts(), ..file(0o700) });
    assert_eq!(denied_by(&nobody(), &closed, Access::Write).unwrap().1, Rule::OtherBits);
    assert_eq!(smallest_change(&nobody(), &on_mount, Access::Write), None);
    let fixed = in_open_directory(Component { immutable: true, ..file(0o777) });
    assert_eq!(denied_by(&Identity::new(0, 0, vec![]), &fixed, Access::Write).unwrap().1, Rule::Immutable);
}

#[test]
fn a_link_of_a_stranger_in_a_sticky_directory_is_refused_only_where_it_is_the_last() {
    let tmp = directory("/tmp", 0o1777);
    let link = |uid| component("/tmp/l", FileKind::Link, 0o777, uid, 0);
    let followed = |uid, is_last| {
        let mut lookup = in_open_directory(file(0o644));
        lookup.steps.push(Step::Follow { link: link(uid), directory: tmp.clone(), is_last });
        lookup
    };
    let rule = |uid, is_last| denied_by(&nobody(), &followed(uid, is_last), Access::Read).map(|(_, rule)| rule);
    assert_eq!(rule(7, true), Some(Rule::ProtectedSymlink));
    assert_eq!((rule(7, false), rule(65534, true), rule(0, true)), (None, None, None));
    let unread = Lookup { protected_symlinks: None, ..followed(7, true) };
    assert!(matches!(decide(&nobody(), &unread, Access::Read), Decision::Unknown { .. }));
}

#[test]
fn what_is_not_known_is_unknown_and_a_denial_that_is_certain_is_not() {
    let served = MountFacts { undecidable: Some("fuse".into()), ..MountFacts::default() };
    let on_fuse = in_open_directory(Component { mount: served, ..file(0o777) });
    assert!(matches!(decide(&nobody(), &on_fuse, Access::Read), Decision::Unknown { .. }));
    let confined = Identity { confinement: Some("SELinux".into()), ..nobody() };
    let open = in_open_directory(file(0o644));
    assert!(matches!(decide(&confined, &open, Access::Read), Decision::Unknown { .. }));
    assert_eq!(denied_by(&confined, &in_open_directory(file(0o600)), Access::Read).unwrap().1, Rule::OtherBits);
    let listed =
        |mode| in_open_directory(Component { acl: AclFact::Unread("a listing shows none".into()), ..file(mode) });
    assert!(matches!(decide(&nobody(), &listed(0o640), Access::Read), Decision::Unknown { .. }));
    assert_eq!(denied_by(&nobody(), &listed(0o604), Access::Read), None);
}

fn any_acl() -> impl Strategy<Value = AclFact> {
    let entries = (0u8..8, prop::option::of(0u8..8), 0u8..8, prop::option::of(0u8..8), 0u8..8, 0u8..8);
    entries.prop_map(|(owner, user, owning, group, mask, other)| {
        let named =
            [user.map(|grants| (AclTag::User(65534), grants)), group.map(|grants| (AclTag::Group(100), grants))];
        let mut list = vec![(AclTag::Owner, owner), (AclTag::OwningGroup, owning), (AclTag::Other, other)];
        list.extend(named.iter().flatten());
        list.push((AclTag::Mask, mask));
        list.sort();
        acl(&list)
    })
}

fn any_component(path: &'static str, kind: FileKind) -> impl Strategy<Value = Component> {
    let ids = prop::sample::select(vec![0u32, 100, 65534]);
    let acl = prop_oneof![Just(AclFact::None), any_acl()];
    (0u32..0o1000, ids.clone(), ids, acl).prop_map(move |(mode, uid, gid, acl)| {
        let mode = if let AclFact::Entries(acl) = &acl { acl.mode_bits() } else { mode };
        Component { acl, ..component(path, kind, mode, uid, gid) }
    })
}

proptest! {
    #[test]
    fn whatever_permissions_deny_the_change_allows(
        directory in any_component("/d", FileKind::Directory),
        file in any_component("/d/f", FileKind::Regular),
        access in prop::sample::select(vec![Access::Read, Access::Write, Access::Execute]),
    ) {
        let lookup = lookup(directory, file);
        let is_denied = matches!(decide(&nobody(), &lookup, access), Decision::Denied(_));
        prop_assert_eq!(smallest_change(&nobody(), &lookup, access).is_some(), is_denied);
    }
}
