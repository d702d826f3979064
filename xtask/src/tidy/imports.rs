//! The import graph of a crate: which module uses which, outside of tests.
//!
//! Files are parsed with `syn`. Paths in `use` items, in code, and in the tokens of macros are
//! resolved through the module tree and through the `use` items of the modules on the way.
//!
//! A method call has no path, so a module that only calls methods of a value has no edge.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, UseTree};

use super::{File, Tree};

/// A path from the root of the crate, `[]` for the root itself.
type ModulePath = Vec<String>;

/// The modules of a crate that are compiled without its tests.
#[derive(Default)]
pub(super) struct Imports {
    modules: BTreeMap<ModulePath, Module>,
}

#[derive(Default)]
struct Module {
    /// The file that contains the module, as a path from the root of the repository.
    file: String,
    /// Names that `use` items bring into scope, with the path each stands for.
    names: BTreeMap<String, Vec<String>>,
    /// Modules that the module imports with a glob.
    globs: Vec<Vec<String>>,
    /// Every path in the module's own code.
    paths: Vec<Vec<String>>,
}

impl Imports {
    /// Reads the crate with the root file `root`. `folder` is its source folder and ends with `/`.
    ///
    /// # Errors
    ///
    /// Returns the file and the reason if a file cannot be parsed.
    pub(super) fn read(tree: &Tree, root: &File, folder: &str) -> Result<Imports, String> {
        let mut imports = Imports::default();
        imports.read_file(tree, root, folder, Vec::new())?;
        Ok(imports)
    }

    /// Reads a file and its child modules. Their files are below `home`, which ends with `/`.
    fn read_file(
        &mut self,
        tree: &Tree,
        file: &File,
        home: &str,
        module: ModulePath,
    ) -> Result<(), String> {
        let parsed =
            syn::parse_file(&file.text).map_err(|error| format!("{}: {error}", file.path))?;
        self.read_items(tree, file, home, module, &parsed.items)
    }

    fn read_items(
        &mut self,
        tree: &Tree,
        file: &File,
        home: &str,
        path: ModulePath,
        items: &[Item],
    ) -> Result<(), String> {
        let mut found = Collector::default();
        for item in items {
            match item {
                Item::Mod(child) if !is_test(&child.attrs) => {
                    self.read_child(tree, file, home, &path, child)?;
                }
                Item::Mod(_) => {}
                other => found.visit_item(other),
            }
        }
        // A module with one file per platform has several files, and is compiled with one of them.
        let module = self.modules.entry(path).or_default();
        module.file.clone_from(&file.path);
        module.names.extend(found.names);
        module.globs.extend(found.globs);
        module.paths.extend(found.paths);
        Ok(())
    }

    fn read_child(
        &mut self,
        tree: &Tree,
        file: &File,
        home: &str,
        parent: &[String],
        child: &ItemMod,
    ) -> Result<(), String> {
        let name = child.ident.to_string();
        let path = [parent, std::slice::from_ref(&name)].concat();
        if let Some((_, items)) = &child.content {
            return self.read_items(tree, file, &format!("{home}{name}/"), path, items);
        }
        if let Some(given) = given_path(&child.attrs) {
            let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let given = format!("{folder}/{given}");
            let below = given.rsplit_once('/').map_or("", |(folder, _)| folder);
            let Some(file) = tree.get(&given) else { return Ok(()) };
            return self.read_file(tree, file, &format!("{below}/"), path);
        }
        let below = format!("{home}{name}/");
        let beside = tree.get(&format!("{home}{name}.rs"));
        match beside.or_else(|| tree.get(&format!("{below}mod.rs"))) {
            // The compiler reports a file that is missing.
            None => Ok(()),
            Some(file) => self.read_file(tree, file, &below, path),
        }
    }

    /// Returns the graph of files. A module that uses its ancestor or descendant adds no edge.
    pub(super) fn between_files(&self) -> Graph {
        self.graph(|module| Some(&module.1.file), |from, to| !is_related(from, to))
    }

    /// Returns the graph of top modules.
    pub(super) fn between_top_modules(&self) -> Graph {
        self.graph(|module| module.0.first(), |_, _| true)
    }

    /// Groups the modules by `name`, and keeps the uses for which `counts` holds.
    fn graph<'a>(
        &'a self,
        name: impl Fn((&'a ModulePath, &'a Module)) -> Option<&'a String>,
        counts: impl Fn(&[String], &[String]) -> bool,
    ) -> Graph {
        let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (path, module) in &self.modules {
            let Some(from) = name((path, module)) else { continue };
            let edges = uses.entry(from.clone()).or_default();
            for used in module.paths.iter().filter_map(|used| self.resolve(path, used)) {
                let target = name((used, &self.modules[used]));
                if let Some(target) = target.filter(|target| *target != from && counts(path, used))
                {
                    edges.insert(target.clone());
                }
            }
        }
        Graph { uses }
    }

    /// Returns the module that a path leads to, seen from a module; `None` for another crate's
    /// path.
    fn resolve(&self, from: &[String], path: &[String]) -> Option<&ModulePath> {
        let mut at = from.to_vec();
        let mut rest: Vec<String> = path.to_vec();
        match path.first()?.as_str() {
            "crate" => at.clear(),
            "self" | "super" => {}
            first if self.defines(from, first) => {}
            first => {
                // Globs of other crates are left out: resolving them here would recurse forever.
                let globs = self.modules.get(from)?.globs.iter();
                let globs = globs.filter(|glob| self.is_local(from, glob));
                let mut modules = globs.filter_map(|glob| self.resolve(from, glob));
                let source = modules.find(|module| *module != from && self.defines(module, first));
                at.clone_from(source?);
            }
        }
        // Bounded: `use` items can refer to each other in a circle.
        for _ in 0..32 {
            let Some(first) = rest.first().cloned() else { break };
            match first.as_str() {
                "crate" | "self" => drop(rest.remove(0)),
                "super" => {
                    at.pop();
                    rest.remove(0);
                }
                _ => {
                    let child = [&at[..], std::slice::from_ref(&first)].concat();
                    if self.modules.contains_key(&child) {
                        at = child;
                        rest.remove(0);
                    } else if let Some(target) = self.modules.get(&at)?.names.get(&first) {
                        if target.first().is_some_and(|first| first == "crate") {
                            at.clear();
                        } else if !self.is_local(&at, target) {
                            break;
                        }
                        rest.splice(..1, target.iter().cloned());
                    } else {
                        break;
                    }
                }
            }
        }
        self.modules.get_key_value(&at).map(|(path, _)| path)
    }

    /// Whether a module has a child or a `use` item of this name.
    fn defines(&self, module: &[String], name: &str) -> bool {
        let is_child = self.modules.contains_key(&[module, &[name.to_owned()]].concat());
        is_child || self.modules.get(module).is_some_and(|module| module.names.contains_key(name))
    }

    /// Whether a path of a `use` item leads into this crate.
    fn is_local(&self, at: &[String], target: &[String]) -> bool {
        let Some(first) = target.first() else { return false };
        matches!(first.as_str(), "crate" | "self" | "super")
            || self.modules.contains_key(&[at, std::slice::from_ref(first)].concat())
    }
}

/// Whether one module contains the other.
fn is_related(one: &[String], other: &[String]) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// A directed graph of names.
pub(super) struct Graph {
    uses: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    /// The groups of two or more that use each other, directly or not, largest first.
    pub(super) fn cycles(&self) -> Vec<Vec<String>> {
        let reach: BTreeMap<&String, BTreeSet<&String>> =
            self.uses.keys().map(|from| (from, self.reached(from))).collect();
        let mut cycles: Vec<Vec<String>> = Vec::new();
        for (from, to) in &reach {
            let cycle: Vec<String> = (to.iter())
                .filter(|to| reach.get(*to).is_some_and(|reached| reached.contains(from)))
                .map(|to| (*to).clone())
                .collect();
            if cycle.len() > 1 && !cycles.contains(&cycle) {
                cycles.push(cycle);
            }
        }
        cycles.sort_by_key(|cycle| std::cmp::Reverse(cycle.len()));
        cycles
    }

    /// The uses within a group, as `user -> used`.
    pub(super) fn edges_within(&self, group: &[String]) -> Vec<(String, String)> {
        let within = |from: &String| {
            self.uses[from].iter().filter(|to| group.contains(to)).cloned().collect::<Vec<_>>()
        };
        let edges = group.iter().map(|from| within(from).into_iter().map(|to| (from.clone(), to)));
        edges.flatten().collect()
    }

    /// Everything that a name uses, directly or not; itself if it is in a cycle.
    pub(super) fn reached<'a>(&'a self, from: &'a String) -> BTreeSet<&'a String> {
        let mut reached = BTreeSet::new();
        let mut waiting = vec![from];
        while let Some(name) = waiting.pop() {
            for used in self.uses.get(name).into_iter().flatten() {
                if reached.insert(used) {
                    waiting.push(used);
                }
            }
        }
        reached
    }
}

/// Collects the paths and the `use` items of one module.
#[derive(Default)]
struct Collector {
    names: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
    paths: Vec<Vec<String>>,
}

impl Collector {
    fn add_use(&mut self, prefix: &[String], tree: &UseTree) {
        let with = |name: &syn::Ident| [prefix, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.add_use(&with(&path.ident), &path.tree),
            UseTree::Name(name) if name.ident == "self" => {
                let known = prefix.last().cloned().unwrap_or_default();
                self.add_name(known, prefix.to_vec());
            }
            UseTree::Name(name) => self.add_name(name.ident.to_string(), with(&name.ident)),
            UseTree::Rename(name) if name.ident == "self" => {
                self.add_name(name.rename.to_string(), prefix.to_vec());
            }
            UseTree::Rename(name) => self.add_name(name.rename.to_string(), with(&name.ident)),
            UseTree::Glob(_) => {
                self.paths.push(prefix.to_vec());
                self.globs.push(prefix.to_vec());
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.add_use(prefix, tree)),
        }
    }

    fn add_name(&mut self, name: String, path: Vec<String>) {
        self.paths.push(path.clone());
        self.names.insert(name, path);
    }

    /// Adds the paths in the tokens of a macro.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.end_path(&mut path);
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                other => {
                    self.end_path(&mut path);
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.add_tokens(group.stream());
                    }
                }
            }
        }
        self.end_path(&mut path);
    }

    fn end_path(&mut self, path: &mut Vec<String>) {
        let path = std::mem::take(path);
        if path.len() > 1 {
            self.paths.push(path);
        }
    }
}

impl<'ast> Visit<'ast> for Collector {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !is_test(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.add_use(&[], &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            self.paths.push(path.segments.iter().map(|part| part.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.add_tokens(call.tokens.clone());
    }

    // `pub(in crate::a)` is no use.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    // `#[serde(with = "..")]` and similar attributes are not resolved.
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Whether an item is compiled for tests only: `cfg(test)` or `cfg(all(test, ..))`.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).any(|attribute| {
        let condition: String =
            attribute.meta.require_list().map(|list| list.tokens.to_string()).unwrap_or_default();
        let condition: String = condition.split_whitespace().collect();
        condition == "test" || condition.starts_with("all(test,")
    })
}

/// The path in a `#[path = ".."]` attribute.
fn given_path(attributes: &[Attribute]) -> Option<String> {
    let attribute = attributes.iter().find(|attribute| attribute.path().is_ident("path"))?;
    let value = attribute.meta.require_name_value().ok()?;
    match &value.value {
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(path), .. }) => Some(path.value()),
        _ => None,
    }
}
