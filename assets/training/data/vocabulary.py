"""Everyday words for small talk, stories and personal facts, chosen by hand; WordNet's are for wider variety."""

ANIMALS = (
    "dog cat horse cow pig sheep goat hen duck goose rabbit mouse rat hamster parrot canary snake turtle frog fish fox wolf bear lion tiger "
    "elephant giraffe monkey zebra camel donkey squirrel hedgehog owl eagle sparrow crow swan penguin whale dolphin shark crab spider bee ant "
    "butterfly snail lizard crocodile deer otter beaver badger bat mole seal kitten puppy pony lamb calf rooster peacock pigeon moose ferret"
).split()
FOODS = (
    "pizza bread cheese soup rice pasta salad cake pie chocolate honey butter bacon ham sausage potato tomato carrot onion garlic cabbage "
    "apple pear plum cherry banana orange lemon melon grape strawberry peach mango avocado spinach pumpkin bean pea lentil mushroom egg yogurt "
    "pancake waffle biscuit muffin sandwich burger noodle curry stew omelette dumpling tea coffee milk juice cocoa jam toast porridge pudding"
).split()
JOBS = (
    "teacher doctor nurse baker butcher farmer fisher cook waiter driver pilot sailor soldier painter writer singer dancer actor musician poet "
    "lawyer judge engineer builder carpenter plumber gardener tailor barber mechanic electrician miner hunter shepherd clerk librarian student "
    "scientist chemist dentist vet pharmacist secretary manager cashier postman journalist photographer programmer mayor guard firefighter "
    "astronaut sculptor weaver potter blacksmith jeweller florist translator historian accountant banker"
).split()
THINGS = (
    "table chair lamp bed sofa door window key lock clock watch mirror carpet cup plate bowl spoon fork knife pot pan kettle bottle basket bag "
    "box suitcase wallet purse umbrella coat hat scarf glove shoe boot shirt sweater dress ring necklace book pen pencil notebook letter stamp "
    "picture camera radio phone computer keyboard printer cable battery bicycle car bus train boat ship plane kite ball doll drum guitar piano "
    "violin flute hammer saw nail rope ladder bucket brush broom candle torch tent map compass coin medal flag bell fence bridge tower wheel "
    "engine pump pipe oven fridge washing-machine toaster blanket pillow towel soap comb bench desk shelf drawer cupboard"
).split()
PLANTS = "rose tulip daisy lily sunflower violet orchid cactus fern moss oak pine maple birch willow palm ivy mint basil lavender tree bush".split()
ADJECTIVES = (
    "big small old young tall short long wide narrow heavy light fast slow strong weak loud quiet bright dark warm cold hot dry wet clean dirty "
    "happy sad angry calm brave shy kind clever lazy busy tired hungry lonely proud funny serious strange famous secret golden wooden iron round "
    "flat sharp soft hard smooth rough sweet sour bitter fresh empty full rich poor wild tame gentle careful curious lucky honest polite noisy "
    "silent sleepy dusty shiny broken hidden forgotten beautiful ugly plain simple mighty tiny huge"
).split()
VERBS = (
    "swim climb dance sing cook bake paint read write run jump fly dig build fish hunt sail ride whistle laugh listen wait hide count knit sew "
    "plant draw row dive juggle skate drum"
).split()
FEELINGS = "joy hope fear love pride anger shame courage sadness surprise wonder longing relief worry envy pity trust doubt delight peace".split()
NATURE = "river mountain lake forest hill valley island beach cave field meadow cliff waterfall desert swamp pond stream rock glacier volcano".split()
STUFF = "sand gold silver iron copper glass wood stone clay dust snow ice water salt sugar wax wool silk leather paper ash smoke mud".split()
