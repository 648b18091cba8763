async def test_dbg(household):
    c = await household.start()
    await household.web.say(household.chat, "hello")
    print(await household.dead_or_idle(c))
    print(household.rows("select id,kind,state,error from jobs"), household.rows("select state,rule from inbox"))
    print(await household.said(household.chat), household.rows("select title, title_origin from conversations"))
    print(c.log)
