"""The verbs of tenants and of repair as any caller may call them."""

from perdure.errors import AccessDeniedError, NodeExistsError, NodeNotFoundError
from perdure.model import RequestContext, Role, Uri
from tests.support.context.tenancy.calls import Answer, Ask, Asking, demand, verb
from tests.support.context.tenancy.people import NOBODY


class TenantVerbs(Asking):
    # ------------------------------------------------------------ making
    @verb("namespaces.create_account")
    def create_account(self, ask: Ask) -> None:
        self._create("namespaces.create_account", ask, Uri(Uri.parse(ask.here).account))

    @verb("namespaces.create_user", 2)
    def create_user(self, ask: Ask) -> None:
        self._create("namespaces.create_user", ask, self._user(ask))

    @verb("namespaces.create_agent")
    def create_agent(self, ask: Ask) -> None:
        self._create("namespaces.create_agent", ask, self._agent(ask))

    def _create(self, name: str, ask: Ask, place: Uri) -> None:
        answer = self.ask(name, ask.ctx, place.account, *place.path[1:], ask.ctx)
        if not _governs(ask.ctx, place):
            self._denied_to(answer, name, ask.ctx, place)
        elif place in self.model.records:
            answer.refused(NodeExistsError)
        else:
            answer.given()
            self.model.records.add(place)
            self.model.accounts.add(place.account)
            if place.path:
                self.model.owners.add(place)

    # ------------------------------------------------------------ listing
    @verb("namespaces.list_accounts")
    def list_accounts(self, ask: Ask) -> None:
        listed = _names(self.ask("namespaces.list_accounts", ask.ctx, ask.ctx))
        everywhere = ask.ctx.role is Role.ROOT
        may = self.model.accounts if everywhere else self.model.accounts & {ask.ctx.account_id}
        must = {Uri.parse(uri).account for uri in self.model.nodes} & may
        demand(must <= listed <= may, f"{ask.ctx} sees the accounts {listed}, not {may}")

    @verb("namespaces.list_users", 2)
    def list_users(self, ask: Ask) -> None:
        self._list_owners("namespaces.list_users", ask, "users")

    @verb("namespaces.list_agents", 2)
    def list_agents(self, ask: Ask) -> None:
        self._list_owners("namespaces.list_agents", ask, "agents")

    def _list_owners(self, name: str, ask: Ask, kind: str) -> None:
        ctx, account = ask.ctx, Uri.parse(ask.here).account
        listed = _names(self.ask(name, ctx, account, ctx))
        known = {o for o in self.model.owners if (o.account, o.path[0]) == (account, kind)}
        seen = {o for o in known if ctx.role is Role.ROOT or self.model.may_see(str(o), ctx)}
        settled = {o for o in seen if o in self.model.records or self._has_nodes(o)}
        names = {o.name for o in settled}
        may = {o.name for o in seen}
        demand(names <= listed <= may, f"{ctx} sees the {kind} {listed} of {account!r}")

    def _has_nodes(self, owner: Uri) -> bool:
        return any(owner.contains(Uri.parse(uri)) for uri in self.model.nodes)

    # ------------------------------------------------------------ deleting
    @verb("namespaces.delete_account")
    def delete_account(self, ask: Ask) -> None:
        if ask.odd % 4:  # seldom: little is left
            return
        name, place = "namespaces.delete_account", Uri(Uri.parse(ask.here).account)
        nodes = sum(Uri.parse(uri).account == place.account for uri in self.model.nodes)
        events = len(self.events[place.account])
        answer = self.ask(name, ask.ctx, place.account, ask.ctx)
        if not _governs(ask.ctx, place):
            self._denied_to(answer, name, ask.ctx, place)
        elif place.account not in self.model.accounts:
            answer.refused(NodeNotFoundError)
        else:
            _check_counts(answer, nodes, events)
            self.model.forget_account(place.account)

    @verb("namespaces.delete_user", 2)
    def delete_user(self, ask: Ask) -> None:
        self._delete("namespaces.delete_user", ask, self._user(ask))

    @verb("namespaces.delete_agent")
    def delete_agent(self, ask: Ask) -> None:
        self._delete("namespaces.delete_agent", ask, self._agent(ask))

    def _delete(self, name: str, ask: Ask, owner: Uri) -> None:
        space = owner.owner_space
        nodes = self.model.of_owner(owner.account, space)
        reported = [event for _, event in self.events[owner.account] if event.owner_space == space]
        known = bool(nodes) or owner in self.model.records
        answer = self.ask(name, ask.ctx, owner.account, owner.name, ask.ctx)
        if not _governs(ask.ctx, owner):
            self._denied_to(answer, name, ask.ctx, owner)
        elif known or answer.error is None:
            _check_counts(answer, len(nodes), len(reported))
            self.model.forget_owner(owner)
        else:
            answer.refused(NodeNotFoundError)

    @verb("namespaces.resume")
    def resume(self, ask: Ask) -> None:
        answer = self.ask("namespaces.resume", ask.ctx, ask.ctx)
        if ask.ctx.role is Role.ROOT:
            demand(answer.given() == [], f"{answer} was left to delete")
        else:
            answer.refused(AccessDeniedError)

    def _user(self, ask: Ask) -> Uri:
        return Uri(Uri.parse(ask.here).account, ("users", self.cast.users[ask.odd % 3]))

    def _agent(self, ask: Ask) -> Uri:
        return Uri(Uri.parse(ask.here).account, ("agents", self.cast.agents[ask.odd % 2]))

    def _denied_to(self, answer: Answer, name: str, ctx: RequestContext, place: Uri) -> None:
        """Demand a refusal that is the same for an account that never was."""
        answer.refused(AccessDeniedError)
        if place.account in {ctx.account_id, ctx.user_id}:  # it is named as the caller's too
            return
        absent = self.ask(name, ctx, NOBODY, *place.path[1:], ctx)
        words = (str(answer.error).replace(ascii(place.account), "<account>"),)
        twins = (str(absent.error).replace(ascii(NOBODY), "<account>"),)
        demand(words == twins, f"{name} tells denied from absent: {words} / {twins}")

    # ------------------------------------------------------------ repair
    @verb("repair.examine", 2)
    def examine(self, ask: Ask) -> None:
        answer = self.ask("repair.examine", ask.ctx, ask.ctx)
        self._check_found(answer, ask.ctx)

    @verb("repair.run", 2)
    def run_repair(self, ask: Ask) -> None:
        for uri in self._check_found(self.ask("repair.run", ask.ctx, ask.ctx), ask.ctx):
            self.model.nodes[uri].edited = False

    def _check_found(self, answer: Answer, ctx: RequestContext) -> set[str]:
        findings = answer.given()
        assert isinstance(findings, list)
        found = {finding.uri for finding in findings}
        edited = {uri for uri, stored in self.model.nodes.items() if stored.edited}
        must = {uri for uri in edited if self.model.may_change(uri, ctx)}
        demand(found == must, f"repair tells {ctx} of {found}, not of {must}")
        return must


def _governs(ctx: RequestContext, place: Uri) -> bool:
    if ctx.role is Role.ADMIN:
        return place.path != () and place.account == ctx.account_id
    return ctx.role is Role.ROOT


def _names(answer: Answer) -> set[str]:
    listed = answer.given()
    assert isinstance(listed, list)
    demand(len(set(listed)) == len(listed), f"{listed} tells something twice")
    return set(listed)


def _check_counts(answer: Answer, nodes: int, events: int) -> None:
    counts = getattr(answer.given(), "counts", {})
    actual = counts.get("nodes", nodes), counts.get("events", events)
    demand(actual == (nodes, events), f"{actual} were counted, not {(nodes, events)}")
