//! Which name means which thing, with a task's own names in front of the scenario's.

use std::collections::BTreeMap;

/// Names of one kind of thing. A task's own names are kept as `task.name`.
#[derive(Clone, Debug)]
pub struct Names<T> {
    map: BTreeMap<String, T>,
}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Names { map: BTreeMap::new() }
    }
}

impl<T: Copy> Names<T> {
    /// Binds a name, in a task's scope if there is one; answers it in full.
    pub fn bind(&mut self, scope: Option<&str>, name: &str, thing: T) -> String {
        let full = match scope {
            Some(task) => format!("{task}.{name}"),
            None => name.to_owned(),
        };
        self.map.insert(full.clone(), thing);
        full
    }

    /// What a name means: the task's own first, then the scenario's, then the only task's that
    /// has one.
    pub fn find(&self, scope: Option<&str>, name: &str) -> Option<T> {
        let own = scope.and_then(|task| self.map.get(&format!("{task}.{name}")));
        own.or_else(|| self.map.get(name)).copied().or_else(|| self.only(name))
    }

    /// The one thing of this name that some task has made.
    fn only(&self, name: &str) -> Option<T> {
        let is = |full: &str| full.rsplit_once('.').is_some_and(|(_, own)| own == name);
        let mut found = self.map.iter().filter(|(full, _)| is(full));
        let (_, thing) = found.next()?;
        found.next().is_none().then_some(*thing)
    }

    /// Every name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, T)> {
        self.map.iter().map(|(name, thing)| (name.as_str(), *thing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tasks_own_name_goes_first_and_a_lone_one_is_found_from_outside() {
        let mut names = Names::default();
        assert_eq!(names.bind(Some("a"), "p", 1), "a.p");
        assert_eq!((names.find(None, "p"), names.find(Some("b"), "p")), (Some(1), Some(1)));
        names.bind(Some("b"), "p", 2);
        assert_eq!((names.find(None, "p"), names.find(Some("b"), "p")), (None, Some(2)));
        assert_eq!(names.bind(None, "p", 3), "p");
        assert_eq!((names.find(None, "p"), names.find(Some("a"), "p")), (Some(3), Some(1)));
        assert_eq!((names.find(Some("c"), "p"), names.find(None, "b.p")), (Some(3), Some(2)));
        assert_eq!(names.iter().count(), 3);
    }
}
