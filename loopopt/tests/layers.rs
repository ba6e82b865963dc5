//! No module of the library uses another one that uses it in turn, not even through others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};
use syn::{Attribute, ItemMod, ItemUse, UseTree};

/// The names from the crate's root to a module or to what is in it.
type Names = Vec<String>;

/// The host goes on in native code, and native code calls the host.
const CALLS_BACK: [&str; 2] = ["oracle::native", "oracle::host"];

#[test]
fn modules_stand_on_one_another() {
    let modules = modules();
    assert!(modules.len() > 200, "{} modules", modules.len());
    // The modules of the crate, and the rooms that they have.
    for depth in [1, 2] {
        let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (user, used) in &modules {
            let user = user[..user.len().min(depth)].join("::");
            let used = used.iter().filter_map(|path| module_of(&modules, path));
            let used = used.map(|module| module[..module.len().min(depth)].join("::"));
            // A module and what is inside it are one.
            let others = used.filter(|used| !is_inside(used, &user) && !is_inside(&user, used));
            let others: BTreeSet<_> = others.filter(|used| [&user, used] != CALLS_BACK).collect();
            uses.entry(user).or_default().extend(others);
        }
        let cycle = without_bottom(uses);
        assert!(cycle.is_empty(), "these use each other, or use such modules: {cycle:#?}");
    }
}

/// What is left if modules that use none of the others are removed, again and again.
fn without_bottom(mut uses: BTreeMap<String, BTreeSet<String>>) -> BTreeMap<String, BTreeSet<String>> {
    loop {
        let bottom: Vec<_> = uses.iter().filter(|(_, used)| used.is_empty()).map(|(user, _)| user.clone()).collect();
        if bottom.is_empty() {
            return uses;
        }
        uses.retain(|user, _| !bottom.contains(user));
        uses.values_mut().for_each(|used| used.retain(|used| !bottom.contains(used)));
    }
}

fn is_inside(inner: &str, outer: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// The module that a path leads into.
fn module_of<'a>(modules: &BTreeMap<Names, Vec<Names>>, path: &'a [String]) -> Option<&'a [String]> {
    (1..=path.len()).rev().map(|len| &path[..len]).find(|module| modules.contains_key(*module))
}

/// The modules, and the paths that each of them names.
fn modules() -> BTreeMap<Names, Vec<Names>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    // What the root of the crate names again, and where it is.
    let named_again: BTreeMap<String, Names> = paths_of(&root.join("lib.rs"), Names::new())
        .into_iter()
        .filter_map(|path| Some((path.last()?.clone(), path)))
        .collect();
    let mut modules = BTreeMap::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the folder can be read") {
            let path = entry.expect("the entry can be read").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = name_of(path.strip_prefix(&root).expect("inside"));
            if name != ["lib"] {
                let found = paths_of(&path, name.clone()).into_iter();
                let found = found.map(|path| match path.first().and_then(|first| named_again.get(first)) {
                    Some(origin) => origin.clone(),
                    None => path,
                });
                modules.insert(name, found.collect());
            }
        }
    }
    modules
}

/// The paths that a module names.
fn paths_of(file: &Path, module: Names) -> Vec<Names> {
    let text = std::fs::read_to_string(file).expect("the file can be read");
    let mut paths = Paths { module, found: Vec::new() };
    paths.visit_file(&syn::parse_file(&text).expect("the file is Rust"));
    paths.found
}

/// The module of a file.
fn name_of(path: &Path) -> Names {
    let path = if path.ends_with("mod.rs") { path.parent().map(PathBuf::from) } else { Some(path.with_extension("")) };
    path.expect("a file in a folder").iter().map(|name| name.to_string_lossy().into_owned()).collect()
}

/// Finds the paths of a module that begin with `crate`, `super` or `self`, tests left out. In the root of the crate, those of `use` as well.
struct Paths {
    module: Names,
    found: Vec<Names>,
}

impl Paths {
    fn add(&mut self, path: &[String]) {
        let mut place: &[String] = &self.module;
        let (mut rest, mut is_ours) = (path, false);
        while let Some((first, others)) = rest.split_first() {
            match first.as_str() {
                "crate" => place = &[],
                "super" => place = place.split_last().map_or(&[], |(_, above)| above),
                "self" => {}
                _ => break,
            }
            (rest, is_ours) = (others, true);
        }
        if is_ours {
            let path = [place, rest].concat();
            self.found.push(path);
        }
    }

    fn add_tree(&mut self, mut before: Names, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.add_tree(before, &path.tree);
            }
            UseTree::Name(name) => {
                before.extend(Some(name.ident.to_string()).filter(|name| name != "self"));
                self.add(&before);
            }
            UseTree::Rename(name) => {
                before.push(name.ident.to_string());
                self.add(&before);
            }
            UseTree::Glob(_) => self.add(&before),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.add_tree(before.clone(), tree)),
        }
    }
}

fn is_test(attrs: &[Attribute]) -> bool {
    attrs
        .iter()
        .any(|attr| attr.path().is_ident("cfg") && attr.parse_args::<syn::Ident>().is_ok_and(|cfg| cfg == "test"))
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let root = self.module.is_empty().then(|| "crate".to_owned());
        self.add_tree(root.into_iter().collect(), &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Names = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.add(&names);
        visit::visit_path(self, path);
    }
}

#[test]
fn a_cycle_is_found() {
    let uses = |pairs: &[(&str, &str)]| {
        let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for &(user, used) in pairs {
            uses.entry(user.to_owned()).or_default().insert(used.to_owned());
            uses.entry(used.to_owned()).or_default();
        }
        uses
    };
    assert!(without_bottom(uses(&[("a", "b"), ("b", "c"), ("a", "c")])).is_empty());
    assert_eq!(without_bottom(uses(&[("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")])).len(), 3);
}
